import type { RecordOutcome } from "../store.ts";

/** The events of a call that were all recorded, one behind the other, as a call's mostly are. */
interface AllRecorded {
  readonly firstRowid: number;
  readonly timestampedMs: number;
  /** By event. */
  readonly deliveries: readonly number[];
}

/** What a call answers, as it crosses the thread: an object for each event would cost more than all else about it. */
export type RecordAnswer = AllRecorded | readonly RecordOutcome[];

export function packOutcomes(outcomes: readonly RecordOutcome[]): RecordAnswer {
  const [first] = outcomes;
  if (first?.kind !== "recorded") return outcomes;
  const { rowid: firstRowid, timestampedMs } = first;
  const deliveries: number[] = [];
  for (const outcome of outcomes) {
    if (outcome.kind !== "recorded") return outcomes;
    if (outcome.rowid !== firstRowid + deliveries.length) return outcomes;
    if (outcome.timestampedMs !== timestampedMs) return outcomes;
    deliveries.push(outcome.deliveries);
  }
  return { firstRowid, timestampedMs, deliveries };
}

export function unpackOutcomes(answer: RecordAnswer): readonly RecordOutcome[] {
  if (!("firstRowid" in answer)) return answer;
  const { firstRowid, timestampedMs, deliveries } = answer;
  return deliveries.map((count, index) => ({
    kind: "recorded",
    rowid: firstRowid + index,
    timestampedMs,
    deliveries: count,
  }));
}
