import type { RecordOutcome } from "../events.ts";
import type { WireOp, WireOutcome, RecordCall } from "./messages.ts";
// `recordEvents` calls and their outcomes as they cross the thread: the numbers of all calls of a message in one row, as
// an object for each, cloned, would cost more than all else about a message. Everything else crosses as it is.

/** The parts of a message; `null` stands for the next call in `records`. */
export interface PackedOps {
  readonly ops: readonly (WireOp | null)[];
  readonly records?: {
    /** A call after the other: nowMs, atomic (0 or 1), events, and four numbers an event as in `RecordCall.rows`. */
    readonly numbers: Float64Array;
    /** By call; absent when no event has one. */
    readonly keys?: readonly (RecordCall["keys"] | null)[];
  };
}

/** The outcomes of a message's parts; `null` stands for those of the next call in `recorded`. */
export interface PackedOutcomes {
  readonly outcomes: readonly (WireOutcome | null)[];
  /** A call after the other: events, and four numbers an event: kind, rowid, timestampedMs, deliveries or revision. */
  readonly recorded?: Float64Array;
}

const CALL_NUMBERS = 3;
const EVENT_NUMBERS = 4;

const KINDS = [
  "recorded",
  "replayed",
  "key_conflict",
  "stale",
  "withheld",
  "deferred",
] as const satisfies readonly RecordOutcome["kind"][];
const KIND_NUMBERS = Object.fromEntries(KINDS.map((kind, number) => [kind, number])) as Readonly<
  Record<RecordOutcome["kind"], number>
>;

export function packOps(ops: readonly WireOp[]): PackedOps {
  let length = 0;
  let keyed = false;
  for (const op of ops) {
    if ("args" in op || op.name !== "recordEvents") continue;
    const { rows, keys } = op.call;
    length += CALL_NUMBERS + rows.length;
    keyed ||= keys !== undefined;
  }
  if (length === 0) return { ops };
  const numbers = new Float64Array(length);
  const allKeys: (RecordCall["keys"] | null)[] = [];
  let at = 0;
  const others = ops.map((op) => {
    if ("args" in op || op.name !== "recordEvents") return op;
    const { nowMs, atomic, rows, keys } = op.call;
    numbers[at] = nowMs;
    numbers[at + 1] = atomic ? 1 : 0;
    numbers[at + 2] = rows.length / EVENT_NUMBERS;
    numbers.set(rows, at + CALL_NUMBERS);
    at += CALL_NUMBERS + rows.length;
    if (keyed) allKeys.push(keys ?? null);
    return null;
  });
  return { ops: others, records: keyed ? { numbers, keys: allKeys } : { numbers } };
}

export function unpackOps({ ops, records }: PackedOps): readonly WireOp[] {
  if (records === undefined) return ops as readonly WireOp[];
  const { numbers, keys } = records;
  let at = 0;
  let calls = 0;
  return ops.map((op): WireOp => {
    if (op !== null) return op;
    const start = at + CALL_NUMBERS;
    const end = start + numbers[at + 2]! * EVENT_NUMBERS;
    const call = { nowMs: numbers[at]!, atomic: numbers[at + 1] === 1, rows: numbers.subarray(start, end) };
    const callKeys = keys?.[calls] ?? undefined;
    at = end;
    calls += 1;
    return { name: "recordEvents", call: callKeys === undefined ? call : { ...call, keys: callKeys } };
  });
}

/** @param ops what the outcomes are of, in the same order */
export function packOutcomes(ops: readonly WireOp[], outcomes: readonly WireOutcome[]): PackedOutcomes {
  const numbers: number[] = [];
  const others = outcomes.map((outcome, index) => {
    if (ops[index]?.name !== "recordEvents" || !("ok" in outcome)) return outcome;
    const events = outcome.ok as readonly RecordOutcome[];
    numbers.push(events.length);
    for (const event of events) {
      numbers.push(
        KIND_NUMBERS[event.kind],
        "rowid" in event ? event.rowid : 0,
        "timestampedMs" in event ? event.timestampedMs : 0,
        event.kind === "recorded" ? event.deliveries : event.kind === "replayed" ? event.revision : 0,
      );
    }
    return null;
  });
  return numbers.length === 0 ? { outcomes } : { outcomes: others, recorded: Float64Array.from(numbers) };
}

export function unpackOutcomes({ outcomes, recorded }: PackedOutcomes): readonly WireOutcome[] {
  if (recorded === undefined) return outcomes as readonly WireOutcome[];
  let at = 0;
  return outcomes.map((outcome) => {
    if (outcome !== null) return outcome;
    const end = at + 1 + recorded[at]! * EVENT_NUMBERS;
    const events: RecordOutcome[] = [];
    for (at += 1; at < end; at += EVENT_NUMBERS) events.push(outcomeAt(recorded, at));
    return { ok: events };
  });
}

function outcomeAt(numbers: Float64Array, at: number): RecordOutcome {
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
