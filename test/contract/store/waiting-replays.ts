import { expect, it } from "vitest";
import type { Action } from "../../../src/domain/action.ts";
import type { SubscriptionSettings } from "../../../src/domain/subscription-settings.ts";
import type { Claim } from "../../../src/store/queue.ts";
import type { ReplayProgress } from "../../../src/store/history.ts";
import { claimRequest } from "../../support/claim-request.ts";
import { eventOf, Fixture, NOW, type OpenStore, recordedRowid, resultOf } from "./fixture.ts";

const HOUR_MS = 3_600_000;
const LATER = NOW + 60_000;

const queuedBy = (steps: readonly ReplayProgress[]) => steps.reduce((sum, { queued }) => sum + queued, 0);

/** Replays of what has failed so far and waits for its next attempt. */
export function waitingReplaySuite(open: OpenStore): void {
  const on = Fixture.use(open);
  let action: Action;

  async function subscribed(settings: Partial<SubscriptionSettings> = {}): Promise<number> {
    action = await on.action();
    return (await on.subscription(action, { maxRetries: 1, settings })).rowid;
  }

  async function publish(keys: readonly string[]): Promise<number[]> {
    const events: number[] = [];
    for (const [index, k] of keys.entries()) {
      const [outcome] = await on.record([eventOf(action, JSON.stringify({ k }))], NOW + index);
      events.push(recordedRowid(outcome));
    }
    return events;
  }

  async function claimed(nowMs: number, most = 500): Promise<readonly Claim[]> {
    const { claims } = await on.queue.claim(claimRequest({ nowMs, limit: 500, most }));
    return claims.toSorted((a, b) => a.event.eventId - b.event.eventId);
  }

  /** Fails all that can be claimed; each waits for so long, and so does its subscription if that is ordered. */
  async function failAll(nowMs: number, untilMs = nowMs + HOUR_MS, most = 500): Promise<number[]> {
    const claims = await claimed(nowMs, most);
    const results = claims.map((claim) =>
      resultOf(claim, "failed", { statusCode: 500, retryAfterMs: untilMs - nowMs }),
    );
    await on.queue.finish(results, nowMs);
    return claims.map(({ event }) => event.eventId);
  }

  const plan = async (subscription: number) =>
    (await on.replays.plan({ subscription, selection: "waiting", fromMs: 0 }))!;
  const count = async (subscription: number) => on.replays.count(await plan(subscription));

  async function replay(subscription: number, nowMs: number, maxDue = 1_000): Promise<ReplayProgress[]> {
    const { rowid } = (await on.replays.start(await plan(subscription), nowMs))!;
    const steps: ReplayProgress[] = [];
    while (steps.at(-1)?.state !== "ended" && steps.length < 20) {
      // Fewer than wait: they are unfinished in any case.
      const step = { nowMs, maxQueued: 8, maxDue, maxUnfinished: 1 };
      steps.push(await on.replays.advance(rowid, step));
    }
    return steps;
  }

  it("makes them due, with all their retries and their attempts counting on, and nothing else", async () => {
    const id = await subscribed();
    const other = await on.subscription(action, { subscription: "other" });
    const events = await publish(Array.from({ length: 12 }, () => "a"));
    await failAll(LATER);
    const [later] = await publish(["a"]);
    expect(await count(id)).toBe(12);
    expect(queuedBy(await replay(id, LATER + 1))).toBe(12);
    expect(await count(id)).toBe(0);
    const claims = await claimed(LATER + 1);
    const own = claims.filter(({ subscription }) => subscription.subscriptionId === id);
    expect(own.map(({ event, attempt, failures }) => [event.eventId, attempt, failures])).toEqual([
      ...events.map((event) => [event, 2, 0]),
      [later, 1, 0],
    ]);
    const others = { subscription: other.rowid, status: "waiting", limit: 50 } as const;
    expect(await on.queue.list(others)).toHaveLength(12);
  });

  it("takes none a second time that fails again, and none that is under way", async () => {
    const id = await subscribed();
    await publish(["a", "a", "a"]);
    await failAll(LATER);
    const soon = await on.queue.list({ subscription: id, status: "waiting", limit: 1 });
    await on.queue.retry(soon[0]!.rowid, LATER + 1);
    await failAll(LATER + 1, LATER + 2);
    // It is claimed by its time, and not back yet.
    expect(await claimed(LATER + 3)).toHaveLength(1);
    expect(await count(id)).toBe(2);
    const { rowid } = (await on.replays.start(await plan(id), LATER + 4))!;
    const step = { nowMs: LATER + 4, maxQueued: 8, maxDue: 8, maxUnfinished: 8 };
    expect((await on.replays.advance(rowid, step)).queued).toBe(2);
    expect(await failAll(LATER + 5)).toHaveLength(2);
    const after = await on.replays.advance(rowid, { ...step, nowMs: LATER + 6 });
    expect(after).toEqual({ queued: 0, state: "ended" });
  });

  it("keeps the order: the first goes again at once", async () => {
    const id = await subscribed({ ordered: true });
    const events = await publish(Array.from({ length: 60 }, () => "a"));
    expect(await failAll(LATER, LATER + HOUR_MS, 1)).toEqual([events[0]]);
    expect(await claimed(LATER + 1)).toEqual([]);
    expect(await count(id)).toBe(1);
    expect(queuedBy(await replay(id, LATER + 1, 50))).toBe(1);
    expect((await on.catalog.findSubscription(id))?.slowed_until).toBeNull();
    const claims = await claimed(LATER + 1, 2);
    expect(claims.map(({ event, failures }) => [event.eventId, failures])).toEqual([[events[0], 0]]);
  });

  it("keeps the order of each key", async () => {
    const id = await subscribed({ ordered: { key: "/k" } });
    const [a1, b1, a2] = await publish(["a", "b", "a"]);
    expect(await failAll(LATER)).toEqual([a1, b1]);
    expect(await count(id)).toBe(2);
    expect(queuedBy(await replay(id, LATER + 1))).toBe(2);
    const claims = await claimed(LATER + 1);
    expect(claims.map(({ event }) => event.eventId)).toEqual([a1, b1]);
    for (const claim of claims) await on.finish(claim, "delivered", { statusCode: 200 });
    expect((await claimed(LATER + HOUR_MS)).map(({ event }) => event.eventId)).toEqual([a2]);
  });
}
