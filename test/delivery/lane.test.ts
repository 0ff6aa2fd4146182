import { describe, expect, it } from "vitest";
import { Lane } from "../../src/delivery/lane.ts";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";

// Steps of what a handler does, and what is known of it then. `answers 40 of 50ms` are as many attempts that begin now.
const STORIES = `
nothing is known of it until it has answered
  is unknown; begin; wait 1s; is unknown; answer; is fast
it is slow once it has stalled for a second, and fast again with a fast answer
  answers 1 of 5ms; wait 10s; begin; wait 1s; is fast; wait 1ms; is slow; wait 999ms; answer; is slow; wait 1s
  answers 1 of 1s; wait 1s; is fast
it is fast while others are answered next to one that hangs
  begin; answers 18 of 5ms every 500ms; is fast; fail; is fast
it is slow when it cannot be reached, however fast the failure is
  begin; wait 1ms; fail; is slow
it has one attempt at a time once it cannot be reached for a second, though it was fast
  answers 1 of 5ms; wait 5ms; fails 240 of 1ms every 5ms; is slow; limit 1
what it gets through in a tenth of a second is prefetched, and nothing unless it is fast
  prefetch 0; answers 40 of 50ms; limit 32; prefetch 64; answers 100 of 800ms; prefetch 4; answers 100 of 0ms
  prefetch 512; begin; wait 1001ms; prefetch 0
one that throttles gets half as many at once each time, then one with growing pauses, until it answers otherwise
  answers 40 of 5ms; limit 32; prefetch 512; throttle; limit 16; prefetch 0; throttle; limit 8; throttle; limit 4
  throttle; limit 2; throttle; limit 1; throttle; throttle for 1s; throttle for 2s; throttle for 4s
  throttle for 8s; throttle for 16s; throttle for 30s; throttle for 30s; wait 1s; answers 1 of 5ms; limit 2
  throttle; throttle; throttle for 1s
one that is ordered as a whole gets growing pauses at once, as it never gets more than one
  ordered; answers 10 of 5ms; throttle; throttle for 1s; throttle for 2s
it has no more than its setting allows, from the change on
  answers 40 of 5ms; limit 32; most 2; limit 2; answers 40 of 5ms; limit 2; most 8; answers 40 of 5ms; limit 8
it is not judged again by what was in flight when it throttled
  answers 40 of 5ms; begin 32; refuse 32; limit 16
as much is leased for its filter to exclude as that excluded in a row, and half of that after each that passes
  allowance 0; exclude 100; allowance 100; answers 1 of 5ms; allowance 50; answers 7 of 5ms; allowance 0
as much is leased for its filter as a claim returns at most, and nothing at its limit
  exclude 2000; allowance 256; begin; allowance 0; answer; allowance 256
`;

const TIERS = ["fast", "unknown", "slow"];

/** A handler as its lane knows it. */
class LaneStory {
  readonly #lane = new Lane(1, 32);
  #nowMs = 1_000_000;
  /** When each attempt under way began. */
  readonly #begun: number[] = [];

  happen(step: string): void {
    const [what = "", ...words] = step.split(" ");
    const [count = 0, ofMs = 0, everyMs = 0] = words.filter((word) => /^\d/.test(word)).map(amountOf);
    const lane = this.#lane;
    const nowMs = this.#nowMs;
    const known: Record<string, unknown> = {
      limit: lane.limit,
      prefetch: lane.prefetch(nowMs),
      allowance: lane.filterAllowance,
    };
    if (what === "is") expect(TIERS[lane.tier(nowMs)]).toBe(words[0]);
    else if (what in known) expect(known[what], step).toBe(count);
    else if (what === "wait") this.#nowMs += count;
    else if (what === "ordered") lane.applySettings({ ...NO_SETTINGS, ordered: true });
    else if (what === "most") lane.applySettings({ ...NO_SETTINGS, max_in_flight: count });
    else if (what === "begin") this.#times(count || 1, 0, () => this.#begin());
    else if (what === "answer") this.#end((beganMs) => lane.answered(nowMs, nowMs - beganMs, false));
    else if (what === "fail") this.#end((beganMs) => lane.unanswered(nowMs, beganMs));
    else if (what === "exclude") this.#times(count, 0, () => lane.excluded());
    else if (what === "answers") {
      this.#attempts(count, everyMs, (beganMs) => lane.answered(beganMs + ofMs, ofMs, false));
    } else if (what === "fails") {
      this.#attempts(count, everyMs, (beganMs) => lane.unanswered(beganMs + ofMs, beganMs));
    } else if (what === "throttle") {
      this.#attempts(1, 1, (beganMs) => expect(lane.throttled(beganMs, 5, beganMs), step).toBe(count));
    } else if (what === "refuse") {
      this.#times(count, 1, () => {
        this.#end((beganMs) => expect(lane.throttled(this.#nowMs + 1, 5, beganMs)).toBe(0));
      });
    } else throw new Error(`There is no step ${step}.`);
  }

  #begin(): void {
    this.#lane.started(this.#nowMs);
    this.#lane.counts.add("sending", 0);
    this.#begun.push(this.#nowMs);
  }

  #end(how: (beganMs: number) => void): void {
    how(this.#begun.shift()!);
    this.#lane.counts.move("sending", "gone", 0);
  }

  /** So many attempts that begin and end at once. */
  #attempts(count: number, everyMs: number, how: (beganMs: number) => void): void {
    this.#times(count, everyMs, () => {
      this.#lane.started(this.#nowMs);
      this.#lane.counts.add("sending", 0);
      how(this.#nowMs);
      this.#lane.counts.move("sending", "gone", 0);
    });
  }

  #times(count: number, everyMs: number, work: () => void): void {
    for (let time = 0; time < count; time += 1) {
      work();
      this.#nowMs += everyMs;
    }
  }
}

/** A number, or milliseconds. */
function amountOf(word: string): number {
  return Number.parseInt(word, 10) * (/^\d+s$/.test(word) ? 1_000 : 1);
}

/** The title of each story, and its steps. */
const TOLD = STORIES.trim()
  .split(/\n(?! )/)
  .map((story) => {
    const [title = "", ...lines] = story.split("\n");
    return [title, lines.flatMap((line) => line.trim().split("; "))] as const;
  });

describe("a handler", () => {
  it.each(TOLD)("%s", (_title, steps) => {
    const story = new LaneStory();
    for (const step of steps) story.happen(step);
  });
});
