import type { EventRecord, RecordOutcome } from "../../events.ts";

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
  /** A call after the other: nowMs, atomic (0 or 1), events; then for each event actionId, revision, payload bytes. */
  readonly numbers: Float64Array;
  /** By event; absent when none of them has one. */
  readonly keys?: readonly (string | null)[];
}

const CALL_NUMBERS = 3;
const EVENT_NUMBERS = 3;

export function packEvents(calls: readonly RecordCall[]): EventColumns {
  const all = calls.flatMap(({ events }) => events);
  const numbers = new Float64Array(calls.length * CALL_NUMBERS + all.length * EVENT_NUMBERS);
  let at = 0;
  for (const { events, nowMs, atomic } of calls) {
    numbers[at] = nowMs;
    numbers[at + 1] = atomic ? 1 : 0;
    numbers[at + 2] = events.length;
    at += CALL_NUMBERS;
    for (const { actionId, revision, payload } of events) {
      numbers[at] = actionId;
      numbers[at + 1] = revision;
      numbers[at + 2] = payload.byteLength;
      at += EVENT_NUMBERS;
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
    const nowMs = numbers[at]!;
    const atomic = numbers[at + 1] === 1;
    const end = at + CALL_NUMBERS + numbers[at + 2]! * EVENT_NUMBERS;
    const events: Incoming[] = [];
    for (at += CALL_NUMBERS; at < end; at += EVENT_NUMBERS) {
      const length = numbers[at + 2]!;
      const key = keys?.[index] ?? null;
      events.push({ actionId: numbers[at]!, revision: numbers[at + 1]!, offset, length, key, nowMs });
      offset += length;
      index += 1;
    }
    calls.push({ atomic, events });
  }
  return calls;
}

const OUTCOME_NUMBERS = 4;
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

/** Four numbers for each event: kind, rowid, timestampedMs, deliveries or revision. */
export function packOutcomes(calls: readonly (readonly StoredOutcome[])[]): Float64Array {
  const outcomes = calls.flat();
  const numbers = new Float64Array(outcomes.length * OUTCOME_NUMBERS);
  let at = 0;
  for (const outcome of outcomes) {
    numbers[at] = KIND_NUMBERS[outcome.kind];
    if ("rowid" in outcome) numbers[at + 1] = outcome.rowid;
    if ("timestampedMs" in outcome) numbers[at + 2] = outcome.timestampedMs;
    if (outcome.kind === "recorded") numbers[at + 3] = outcome.deliveries;
    else if (outcome.kind === "replayed") numbers[at + 3] = outcome.revision;
    at += OUTCOME_NUMBERS;
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
      at += OUTCOME_NUMBERS;
      return outcome;
    }),
  );
}

function outcomeAt(numbers: Float64Array, at: number): StoredOutcome {
  const kind = KINDS[numbers[at]!]!;
  const rowid = numbers[at + 1]!;
  const timestampedMs = numbers[at + 2]!;
  switch (kind) {
    case "recorded":
      return { kind, rowid, timestampedMs, deliveries: numbers[at + 3]! };
    case "replayed":
      return { kind, rowid, timestampedMs, revision: numbers[at + 3]! };
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
