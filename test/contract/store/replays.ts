import { expect, it } from "vitest";
import type { Replay, ReplaySelection } from "../../../src/domain/replay.ts";
import type { Subscription } from "../../../src/domain/subscription.ts";
import type { AttemptEnding } from "../../../src/store/queue.ts";
import type { ReplayProgress, ReplayRequest, ReplayStep } from "../../../src/store/history.ts";
import { claimRequest } from "../../support/claim-request.ts";
import { eventOf, Fixture, NOW, type OpenStore, resultOf } from "./fixture.ts";

const LATER = NOW + 3_600_000;
const HOUR = 3_600_000;

const delivered = (): AttemptEnding => "delivered";

const NO_RETRIES = { maxRetries: 0 } as const;

export function replaySuite(open: OpenStore): void {
  const on = Fixture.use(open);

  type Planned = [subscription: Subscription, selection: ReplaySelection, range?: Partial<ReplayRequest>];

  const requestOf = (...[{ rowid }, selection, range]: Planned): ReplayRequest => {
    return { subscription: rowid, selection, fromMs: 0, ...range };
  };
  const count = (...planned: Planned) => on.replays.count(requestOf(...planned));
  const start = async (...planned: Planned) => (await on.replays.start(requestOf(...planned), LATER))!;

  const STEP = { nowMs: LATER, maxQueued: 1_000, maxDue: 1_000, maxUnfinished: 10_000 };
  const step = ({ rowid }: Replay, given: Partial<ReplayStep> = {}): Promise<ReplayProgress> =>
    on.replays.advance(rowid, { ...STEP, ...given });

  async function toTheEnd(replay: Replay): Promise<number> {
    let queued = 0;
    for (;;) {
      const progress = await step(replay);
      queued += progress.queued;
      if (progress.state === "ended") return queued;
      expect(progress.state).toBe("running");
    }
  }

  /** Ends every delivery that is due, each as told by its event. */
  async function endAll(
    endingOf: (eventId: number) => AttemptEnding,
    nowMs = LATER + HOUR,
    retryAfterMs = 0,
  ): Promise<number[]> {
    const ended: number[] = [];
    for (;;) {
      const { claims } = await on.queue.claim(claimRequest({ nowMs, limit: 500, most: 500 }));
      if (claims.length === 0) return ended;
      ended.push(...claims.map(({ event }) => event.eventId));
      const results = claims.map((claim) =>
        resultOf(claim, endingOf(claim.event.eventId), { statusCode: 500, retryAfterMs }),
      );
      await on.queue.finish(results, nowMs);
    }
  }

  it("select events by time, also where the clock was set back", async () => {
    const action = await on.action();
    const first = await on.publish(action, 2, NOW);
    await on.publish(action, 2, NOW + HOUR);
    await on.queue.moveWaits(HOUR, NOW + 5_000);
    const again = await on.publish(action, 2, NOW + 5_000);
    const subscription = await on.subscription(action);
    const range = { fromMs: NOW, toMs: NOW + 60_000 };
    expect(await count(subscription, "missed", range)).toBe(4);
    expect(await toTheEnd(await start(subscription, "missed", range))).toBe(4);
    expect(await endAll(delivered)).toEqual([...first, ...again]);
  });

  it("leave capacity for live deliveries, and wait without capacity or while the subscription is paused", async () => {
    const { action, subscription } = await on.due(20, NO_RETRIES);
    await endAll(() => "failed");
    await on.publish(action, 3, LATER);
    const replay = await start(subscription, "failed");
    const limits = { maxDue: 10, maxUnfinished: 1_000 };
    const late = { ...limits, nowMs: LATER + 10 };
    expect(await step(replay, { ...late, total: 20 })).toEqual({ queued: 7, state: "running" });
    expect(await step(replay, late)).toEqual({ queued: 0, state: "saturated" });
    await on.update(subscription.rowid, { maxRetries: 5 }, LATER);
    await endAll(() => "failed", LATER + HOUR, 4 * HOUR);
    expect(await step(replay, { ...late, maxUnfinished: 10 })).toEqual({ queued: 0, state: "saturated" });
    await on.update(subscription.rowid, { active: false }, LATER);
    expect(await step(replay, late)).toEqual({ queued: 0, state: "paused" });
    await on.update(subscription.rowid, { active: true }, LATER);
    expect(await step(replay, { ...late, maxQueued: 4 })).toEqual({ queued: 4, state: "running" });
    expect(await step(replay, late)).toEqual({ queued: 6, state: "running" });
    expect(await on.replays.find(replay.rowid)).toMatchObject({ total: 20, queued: 17, status: "running" });
  });

  it.each(["failed", "all", "missed"] as const)(
    "%s: count as skipped what was removed before its turn",
    async (selection) => {
      const active = selection !== "missed";
      const { subscription } = await on.due(8, { ...NO_RETRIES, active });
      if (active) await endAll(() => "failed");
      else await on.update(subscription.rowid, { active: true });
      const replay = await start(subscription, selection);
      expect(await step(replay, { maxQueued: 2, total: 8 })).toEqual({ queued: 2, state: "running" });
      // Those right behind the ones that were sent, one in the middle, and the last.
      for (const n of [2, 3, 5, 7]) {
        const range = { fromMs: NOW + n, beforeMs: NOW + n + 1 };
        expect(await on.events.removeExpired(range)).toMatchObject({ events: 1 });
      }
      expect(await toTheEnd(replay)).toBe(2);
      const counts = { status: "done", total: 8, queued: 4, skipped: 4 };
      const ended = { ...counts, finished_at: new Date(LATER).toISOString() };
      expect(await on.replays.find(replay.rowid)).toMatchObject(ended);
      await expect(on.replays.cancel(replay.rowid, LATER)).rejects.toMatchObject({ code: "conflict" });
    },
  );

  it("have a total once they are counted, or as many as failed anew meanwhile", async () => {
    const { subscription } = await on.due(4, NO_RETRIES);
    await endAll(() => "failed");
    const replay = await start(subscription, "failed");
    const counts = async () => {
      const { total, queued, skipped } = (await on.replays.find(replay.rowid))!;
      return [total, queued, skipped];
    };
    await step(replay, { maxQueued: 1 });
    expect(await counts()).toEqual([null, 1, 0]);
    await step(replay, { maxQueued: 1, total: 3 });
    expect(await counts()).toEqual([3, 2, 0]);
    await toTheEnd(replay);
    expect(await counts()).toEqual([4, 4, 0]);
    const other = await start(subscription, "missed");
    await step(other, { maxQueued: 0, total: 9 });
    expect(await on.replays.cancel(other.rowid, LATER)).toMatchObject({ total: 9, skipped: 0 });
  });

  it("pass over events of others at once, however many there are", async () => {
    const { action, subscription } = await on.due(1, NO_RETRIES);
    const other = await on.action("other");
    const batch = Array.from({ length: 500 }, () => eventOf(other, "{}"));
    for (let stored = 0; stored < 8_500; stored += batch.length) await on.record(batch, NOW + 1);
    await on.publish(action, 1, LATER);
    for (const selection of ["failed", "all"] as const) {
      expect(await endAll(() => "failed")).toHaveLength(2);
      const replay = await start(subscription, selection);
      const steps = [await step(replay), await step(replay), await step(replay)];
      expect(steps.map(({ queued, state }) => [queued, state])).toEqual([
        [2, "running"],
        [0, "ended"],
        [0, "ended"],
      ]);
    }
  });

  it("do not start once their subscription is deleted, and count nothing then", async () => {
    const { subscription } = await on.due();
    await on.catalog.deleteSubscription(subscription.rowid, LATER);
    expect(await on.replays.start(requestOf(subscription, "all"), LATER)).toBeUndefined();
    expect(await count(subscription, "all")).toBe(0);
  });

  it("keep deliveries in the order of their times, wherever the clock is set", async () => {
    const action = await on.action();
    const subscription = await on.subscription(action, { active: false });
    const missed = await on.publish(action, 4, NOW + HOUR);
    await on.update(subscription.rowid, { active: true });
    const replay = await start(subscription, "missed");
    // Set back before the replay, forward in it, and back a little after it.
    await on.queue.moveWaits(HOUR, NOW);
    await step(replay, { nowMs: NOW, maxQueued: 2 });
    await endAll(delivered);
    await step(replay, { nowMs: NOW + 30_000, maxQueued: 2 });
    const live = [
      ...(await on.publish(action, 1, NOW + 29_500)),
      ...(await on.publish(action, 1, NOW + 40_000)),
    ];
    const listed = async (fromMs: number, toMs: number): Promise<number[]> =>
      (await on.deliveries({ fromMs, toMs })).map(({ event_id: id }) => id).toReversed();
    expect(await listed(NOW, NOW + 1)).toEqual(missed.slice(0, 2));
    expect(await listed(NOW + 1, NOW + 30_001)).toEqual([...missed.slice(2), live[0]]);
    expect(await listed(NOW + 30_001, NOW + HOUR)).toEqual([live[1]]);
    expect(await listed(NOW + HOUR, NOW + 2 * HOUR)).toEqual([]);
    expect(await on.rowids({ fromMs: NOW + HOUR, order: "asc" })).toEqual(missed);
    expect(await on.rowids({ fromMs: NOW, toMs: NOW + HOUR, order: "asc" })).toEqual(live);
  });
}
