import type { ReplayPlan } from "./replays.ts";
import type { EventRange } from "./replays.ts";

interface Counted {
  readonly count: number;
  /** What is not counted yet. */
  readonly rest: readonly EventRange[];
}

/**
 * How many deliveries a replay would send, asked of the store piece by piece.
 * @param ask may give up by answering `undefined`; so does the count then
 */
export async function countWholeReplay<T extends Counted | undefined>(
  plan: ReplayPlan,
  ask: (left: ReplayPlan) => Promise<T>,
): Promise<number | Extract<T, undefined>> {
  let total = 0;
  let { ranges } = plan;
  while (ranges.length > 0) {
    const counted = await ask({ ...plan, ranges });
    if (counted === undefined) return counted as Extract<T, undefined>;
    total += counted.count;
    ranges = counted.rest;
  }
  return total;
}
