import type { EventRecord, RecordOutcome } from "../../events.ts";
import { columns } from "../thread/columns.ts";

// Calls that record events, and their outcomes, as they cross the thread: the numbers of all calls of a batch in one array,
// as an object for each, cloned, would cost more than all else about a message.

/** One call, as the main thread has it. */
export interface RecordCall {
  readonly events: readonly EventRecord[];
  readonly nowMs: number;
  readonly atomic: boolean;
}

/** One call, as the store's thread has it. */
export interface EventBatch {
  readonly atomic: boolean;
  readonly events: readonly Incoming[];
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

/** What came of one event. `deferred`: the rows before it were enough for one transaction; to be sent again. */
export type StoredOutcome = Exclude<RecordOutcome, { kind: "failed" }> | { readonly kind: "deferred" };

interface EventColumns {
  /** A call after the other: those of `CALL`, then those of `EVENT` for each event. */
  readonly numbers: Float64Array;
  /** By event; absent when none of them has one. */
  readonly keys?: readonly (string | null)[];
}

/** `atomic` is 0 or 1, `events` how many follow. */
const CALL = columns("nowMs", "atomic", "events");
/** Revisions count from 1. */
const NO_REVISION = 0;
const EVENT = columns("actionId", "revision", "payloadBytes");

export function packEvents(calls: readonly RecordCall[]): EventColumns {
  const all = calls.flatMap(({ events }) => events);
  const numbers = new Float64Array(calls.length * CALL.count + all.length * EVENT.count);
  let at = 0;
  for (const { events, nowMs, atomic } of calls) {
    numbers[at + CALL.at.nowMs] = nowMs;
    numbers[at + CALL.at.atomic] = atomic ? 1 : 0;
    numbers[at + CALL.at.events] = events.length;
    at += CALL.count;
    for (const { actionId, revision, payload, lookupOnly } of events) {
      numbers[at + EVENT.at.actionId] = actionId;
      numbers[at + EVENT.at.revision] = lookupOnly === true ? NO_REVISION : revision;
      numbers[at + EVENT.at.payloadBytes] = payload.byteLength;
      at += EVENT.count;
    }
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
    calls.push({ atomic, events });
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
  "deferred",
] as const satisfies readonly StoredOutcome["kind"][];
const KIND_NUMBERS = Object.fromEntries(KINDS.map((kind, number) => [kind, number])) as Readonly<
  Record<StoredOutcome["kind"], number>
>;

/** The numbers of `OUTCOME` for each event. */
export function packOutcomes(calls: readonly (readonly StoredOutcome[])[]): Float64Array {
  const outcomes = calls.flat();
  const numbers = new Float64Array(outcomes.length * OUTCOME.count);
  let at = 0;
  for (const outcome of outcomes) {
    numbers[at + OUTCOME.at.kind] = KIND_NUMBERS[outcome.kind];
    if ("rowid" in outcome) numbers[at + OUTCOME.at.rowid] = outcome.rowid;
    if ("timestampedMs" in outcome) numbers[at + OUTCOME.at.timestampedMs] = outcome.timestampedMs;
    if (outcome.kind === "recorded") numbers[at + OUTCOME.at.count] = outcome.deliveries;
    else if (outcome.kind === "replayed") numbers[at + OUTCOME.at.count] = outcome.revision;
    at += OUTCOME.count;
  }
  return numbers;
}

export function unpackOutcomes(
  numbers: Float64Array,
  calls: readonly RecordCall[],
): readonly (readonly StoredOutcome[])[] {
  let at = 0;
  return calls.map(({ events }) =>
    events.map(() => {
      const outcome = outcomeAt(numbers, at);
      at += OUTCOME.count;
      return outcome;
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
    case "deferred":
      return { kind };
    default:
      return kind satisfies never;
  }
}
