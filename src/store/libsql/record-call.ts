import type { RecordCall } from "./messages.ts";

/** One event of a flight that is to be decided on. */
export interface Candidate {
  /** Its place among all of the flight. */
  readonly place: number;
  readonly actionId: number;
  readonly revision: number;
  readonly offset: number;
  readonly length: number;
  readonly key: string | null;
  readonly nowMs: number;
}

/** The candidates of each call. */
export function candidatesOf(calls: readonly RecordCall[]): readonly (readonly Candidate[])[] {
  let place = 0;
  return calls.map(({ rows, keys, nowMs, base = 0 }) => {
    const candidates: Candidate[] = [];
    for (let at = 0; at < rows.length; at += 4) {
      candidates.push({
        place,
        actionId: rows[at] ?? 0,
        revision: rows[at + 1] ?? 0,
        offset: base + (rows[at + 2] ?? 0),
        length: rows[at + 3] ?? 0,
        key: keys?.[at / 4] ?? null,
        nowMs,
      });
      place += 1;
    }
    return candidates;
  });
}
