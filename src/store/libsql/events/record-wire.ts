import type { EventRecord, RecordOutcome } from "../../events.ts";
import type { RecordClaim } from "../../queue.ts";
import { columns } from "../thread/columns.ts";

// Calls that record events, and their outcomes, as they cross the thread: the numbers of all calls of a batch in one array,
// as an object for each, cloned, would cost more than all else about a message.

/** One call, as the main thread has it. */
export interface RecordCall {
  readonly events: readonly EventRecord[];
  readonly nowMs: number;
  readonly atomic: boolean;
  readonly claim?: RecordClaim | undefined;
}

/** One call, as the store's thread has it. */
export interface EventBatch {
  readonly atomic: boolean;
  readonly events: readonly Incoming[];
  readonly claim?: Pick<RecordClaim, "subscriptions" | "leaseMs">;
}

/** An event that is to be decided on. */
export interface Incoming {
  readonly actionId: number;
  readonly revision: number;
  /** Where its payload lies in the transaction's bytes. */
  readonly offset: number;
  readonly length: number;
  readonly key: string | null;
  readonly nowMs: number;
}

/** Deliveries of one event that were leased as they were made. */
export interface RecordedLeases {
  readonly claimId: number;
  /** As in `ClaimReply`, of these and others. */
  readonly subscriptions: string;
  readonly deliveries: readonly (readonly [deliveryId: number, subscriptionId: number])[];
}

/** What came of one event. */
export type StoredOutcome =
  | Exclude<RecordOutcome, { kind: "failed" | "recorded" }>
  | (Omit<RecordOutcome & { kind: "recorded" }, "claims"> & { readonly leases?: RecordedLeases });

interface EventColumns {
  /** A call after the other: those of `CALL`, those of `EVENT` for each event, and the subscriptions of its claim. */
  readonly numbers: Float64Array;
  /** By event; absent when none of them has one. */
  readonly keys?: readonly (string | null)[];
}

/** `atomic` is 0 or 1; `events` and `subscriptions`: how many follow. Without a claim, the last two are 0. */
const CALL = columns("nowMs", "atomic", "events", "subscriptions", "leaseMs");
/** Revisions count from 1. */
const NO_REVISION = 0;
const EVENT = columns("actionId", "revision", "payloadBytes");

export function packEvents(calls: readonly RecordCall[]): EventColumns {
  const all = calls.flatMap(({ events }) => events);
  const claimed = calls.reduce((count, { claim }) => count + (claim?.subscriptions.length ?? 0), 0);
  const numbers = new Float64Array(calls.length * CALL.count + all.length * EVENT.count + claimed);
  let at = 0;
  for (const { events, nowMs, atomic, claim } of calls) {
    numbers[at + CALL.at.nowMs] = nowMs;
    numbers[at + CALL.at.atomic] = atomic ? 1 : 0;
    numbers[at + CALL.at.events] = events.length;
    numbers[at + CALL.at.subscriptions] = claim?.subscriptions.length ?? 0;
    numbers[at + CALL.at.leaseMs] = claim?.leaseMs ?? 0;
    at += CALL.count;
    for (const { actionId, revision, payload, lookupOnly } of events) {
      numbers[at + EVENT.at.actionId] = actionId;
      numbers[at + EVENT.at.revision] = lookupOnly === true ? NO_REVISION : revision;
      numbers[at + EVENT.at.payloadBytes] = payload.byteLength;
      at += EVENT.count;
    }
    if (claim === undefined) continue;
    numbers.set(claim.subscriptions, at);
    at += claim.subscriptions.length;
  }
  const isKeyed = all.some(({ idempotencyKey }) => idempotencyKey !== undefined);
  return isKeyed ? { numbers, keys: all.map(({ idempotencyKey }) => idempotencyKey ?? null) } : { numbers };
}

/** @param start where their payloads, one behind the other, start in the transaction's bytes */
export function unpackEvents({ numbers, keys }: EventColumns, start: number): readonly EventBatch[] {
  const calls: EventBatch[] = [];
  let offset = start;
  let index = 0;
  for (let at = 0; at < numbers.length;) {
    const nowMs = numbers[at + CALL.at.nowMs]!;
    const atomic = numbers[at + CALL.at.atomic] === 1;
    const claimed = numbers[at + CALL.at.subscriptions]!;
    const leaseMs = numbers[at + CALL.at.leaseMs]!;
    const end = at + CALL.count + numbers[at + CALL.at.events]! * EVENT.count;
    const events: Incoming[] = [];
    for (at += CALL.count; at < end; at += EVENT.count) {
      const actionId = numbers[at + EVENT.at.actionId]!;
      const revision = numbers[at + EVENT.at.revision]!;
      const length = numbers[at + EVENT.at.payloadBytes]!;
      events.push({ actionId, revision, offset, length, key: keys?.[index] ?? null, nowMs });
      offset += length;
      index += 1;
    }
    at += claimed;
    const subscriptions = [...numbers.subarray(end, at)];
    calls.push(claimed === 0 ? { atomic, events } : { atomic, events, claim: { subscriptions, leaseMs } });
  }
  return calls;
}

/** `count`: deliveries of a recorded one, else the revision. What a kind has not is 0. */
const OUTCOME = columns("kind", "rowid", "timestampedMs", "count");
const KINDS = [
  "recorded",
  "replayed",
  "key_conflict",
  "stale",
  "withheld",
] as const satisfies readonly StoredOutcome["kind"][];
const KIND_NUMBERS = Object.fromEntries(KINDS.map((kind, number) => [kind, number])) as Readonly<
  Record<StoredOutcome["kind"], number>
>;

interface PackedOutcomes {
  /** Those of `OUTCOME` for each event. */
  readonly numbers: Float64Array;
  /** How many events of each call were taken. */
  readonly taken: readonly number[];
  /** By the index of the outcome. */
  readonly leases?: ReadonlyMap<number, RecordedLeases>;
}

export function packOutcomes(calls: readonly (readonly StoredOutcome[])[]): PackedOutcomes {
  const outcomes = calls.flat();
  const numbers = new Float64Array(outcomes.length * OUTCOME.count);
  const leases = new Map<number, RecordedLeases>();
  let at = 0;
  for (const outcome of outcomes) {
    if (outcome.kind === "recorded" && outcome.leases !== undefined) {
      leases.set(at / OUTCOME.count, outcome.leases);
    }
    numbers[at + OUTCOME.at.kind] = KIND_NUMBERS[outcome.kind];
    if ("rowid" in outcome) numbers[at + OUTCOME.at.rowid] = outcome.rowid;
    if ("timestampedMs" in outcome) numbers[at + OUTCOME.at.timestampedMs] = outcome.timestampedMs;
    if (outcome.kind === "recorded") numbers[at + OUTCOME.at.count] = outcome.deliveries;
    else if (outcome.kind === "replayed") numbers[at + OUTCOME.at.count] = outcome.revision;
    at += OUTCOME.count;
  }
  const taken = calls.map(({ length }) => length);
  return leases.size === 0 ? { numbers, taken } : { numbers, taken, leases };
}

/** @returns by call, the outcomes of the events that were taken, which are the first of the call */
export function unpackOutcomes({
  numbers,
  taken,
  leases,
}: PackedOutcomes): readonly (readonly StoredOutcome[])[] {
  let index = 0;
  return taken.map((length) =>
    Array.from({ length }, () => {
      const outcome = outcomeAt(numbers, index * OUTCOME.count);
      const own = leases?.get(index);
      index += 1;
      return own === undefined || outcome.kind !== "recorded" ? outcome : { ...outcome, leases: own };
    }),
  );
}

function outcomeAt(numbers: Float64Array, at: number): StoredOutcome {
  const kind = KINDS[numbers[at + OUTCOME.at.kind]!]!;
  const rowid = numbers[at + OUTCOME.at.rowid]!;
  const timestampedMs = numbers[at + OUTCOME.at.timestampedMs]!;
  const count = numbers[at + OUTCOME.at.count]!;
  switch (kind) {
    case "recorded":
      return { kind, rowid, timestampedMs, deliveries: count };
    case "replayed":
      return { kind, rowid, timestampedMs, revision: count };
    case "key_conflict":
      return { kind, rowid };
    case "stale":
    case "withheld":
      return { kind };
    default:
      return kind satisfies never;
  }
}
