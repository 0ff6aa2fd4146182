import { expect, it } from "vitest";
import type { AttemptResult } from "../../../src/store/queue.ts";
import { eventOf, Fixture, NOW, type OpenStore, resultOf } from "./fixture.ts";

const LATER = NOW + 60_000;

/** What a store answers of the attempts of one subscription, and of what could be sent to it. */
export function attemptSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  it("are found wherever in a backlog their deliveries are", async () => {
    const action = await on.action();
    const { rowid } = await on.subscription(action);
    const all = Array.from({ length: 900 }, () => eventOf(action));
    const recorded = await on.events.record(all, NOW);
    const events = recorded.map((outcome) => (outcome.kind === "recorded" ? outcome.rowid : 0));
    /** Attempts so many of those that are due, a millisecond after each other; answers the last delivery. */
    const attempt = async (count: number, nowMs: number, given: Partial<AttemptResult>): Promise<number> => {
      const { claims } = await on.claim({ nowMs, limit: count, most: count });
      const { ending = "failed" } = given;
      const results = claims.map((claim, index) =>
        resultOf(claim, ending, { startedAtMs: nowMs + index, ...given }),
      );
      await on.queue.finish(results, nowMs + count);
      return claims.at(-1)!.deliveryId;
    };
    const latest = async (limit: number): Promise<number[]> =>
      (await on.queue.attempts(rowid, limit)).map(({ event_id: event }) => events.indexOf(event) + 1);

    const last = await attempt(150, LATER, { ending: "delivered" });
    expect(await latest(3)).toEqual([150, 149, 148]);
    await on.queue.retry(last - 148, LATER);
    await attempt(1, LATER + 1_000, { retryAfterMs: 98_000 });
    await attempt(1, LATER + 2_000, { retryAfterMs: 99_000 });
    await attempt(1, LATER + 3_000, { ending: "delivered" });
    expect(await latest(4)).toEqual([152, 151, 2, 150]);
    expect(await latest(100)).toHaveLength(100);
  });

  it("can be made of any subscription there is, also of a paused one, as a claim would have it", async () => {
    const { id: rowid } = await on.due();
    const [claim] = (await on.claim()).claims;
    expect(await on.queue.findSendable(rowid)).toEqual(claim?.subscription);
    await on.update(rowid, { active: false });
    expect(await on.queue.findSendable(rowid)).toEqual(claim?.subscription);
    expect(await on.queue.findSendable(rowid + 1)).toBeUndefined();
    await on.catalog.deleteSubscription(rowid, NOW);
    expect(await on.queue.findSendable(rowid)).toBeUndefined();
  });
}
