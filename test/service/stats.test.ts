import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Stats, StatsQuery } from "../../src/domain/stats/stats.ts";
import { LOCAL_OWNER, type Principal } from "../../src/domain/token.ts";
import { Access } from "../../src/service/auth.ts";
import { readStats } from "../../src/service/stats.ts";
import type { AttemptResult } from "../../src/store/queue.ts";
import { newAction, newEvent, newSubscription } from "../contract/harness.ts";
import { claimRequest } from "../support/claim-request.ts";
import { type LocalService, openLocalService } from "../support/local-service.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

/** The values that are not zero, by the step counted from the last one, which is 0. */
function shown(column: readonly (number | null)[]): Record<number, number | null> {
  const values = column.map((value, index) => [index - column.length + 1, value] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== 0));
}

describe("figures over time", () => {
  let local: LocalService;
  let ids: number[];

  beforeEach(async () => {
    local = await openLocalService();
    const { evreg } = local;
    for (const action of ["a", "b"]) await evreg.actions.create(newAction({ action, application: "crm" }));
    ids = [];
    for (const subscription of ["one", "two"]) {
      const input = newSubscription({ subscription, action: "a", application: subscription });
      ids.push((await evreg.subscriptions.create(input)).data.rowid);
    }
    // What is delivered below was published long before.
    await publish("a", 200);
    local.clock.pass(20 * DAY_MS);
  });
  afterEach(() => local.close());

  const read = async (query: StatsQuery, principal: Principal = LOCAL_OWNER): Promise<Stats> =>
    (await readStats(local, new Access(principal), query)).data;

  async function publish(action: string, count: number): Promise<void> {
    await local.evreg.events.publishBatch(
      Array.from({ length: count }, () => newEvent({ email: "a@b.c" }, action)),
    );
  }

  /** One delivery, from its claim to its result. */
  async function deliver(subscription: number, result: Partial<AttemptResult> = {}): Promise<void> {
    const { store, clock } = local;
    const nowMs = clock.now();
    const none = { leased: 0, capacity: 0, tier: 0 };
    const { claims } = await store.queue.claim({
      ...claimRequest({ nowMs }),
      quotas: [[ids[subscription]!, { ...none, capacity: 1 }]],
      defaultQuota: none,
    });
    const [{ deliveryId, claimId }] = claims as [(typeof claims)[number]];
    const delivered = { latencyMs: 12, statusCode: 200, ending: "delivered" } as const;
    const own = { ...(result.ending === undefined ? delivered : {}), ...result };
    const attempt = {
      deliveryId,
      claimId,
      startedAtMs: nowMs,
      durationMs: 8,
      ending: "delivered",
      ...own,
    } as const;
    const [outcome] = await store.queue.finish([attempt], nowMs);
    expect(outcome?.kind).toBe("stored");
  }

  const FAILED = { statusCode: 503, ending: "failed" } as const;

  it("add up to the same, whatever of them is stored already", async () => {
    await local.evreg.subscriptions.update(ids[1]!, { max_retries: 0 });
    for (let minute = 0; minute < 65; minute += 1) {
      await publish("a", 2);
      await publish("b", 1);
      await deliver(0);
      if (minute % 10 === 0) await deliver(1, FAILED);
      await local.clock.advance(MINUTE_MS);
      if (minute % 43 !== 0) continue;
      const all = { published: 3 * (minute + 1), delivered: minute + 1 };
      for (const range of ["24h", "7d"] as const) {
        expect((await read({ range })).totals).toMatchObject(all);
        expect((await read({ range, action: "b" })).totals.published).toBe(minute + 1);
      }
    }
    const { totals, series } = await read({ range: "7d" });
    expect(totals).toEqual({
      published: 195,
      delivered: 65,
      failed_attempts: 7,
      failed: 7,
      latency_ms: { p50: 12, p95: 12, p99: 12 },
      attempt_ms: { p50: 8, p95: 8, p99: 8 },
    });
    expect(shown(series.published.slice(-2))).toEqual({ [-1]: 180, 0: 15 });
    expect(series.published.slice(0, -2).every((value) => value === 0)).toBe(true);
    const day = await read({ range: "24h", subscription: ids[1]! });
    expect(day.totals).toMatchObject({ published: 0, delivered: 0, failed_attempts: 7 });
    expect(shown(day.series.failed.slice(-5))).toEqual({ [-1]: 1, [-3]: 1 });
    const application = await read({ range: "7d", application: "two" });
    expect(application.totals).toMatchObject({ published: 0, failed: 7 });
  });

  it("have all that was stored, by every range", async () => {
    let published = 0;
    for (const endSecond of [5, 34, 7]) {
      await publish("a", 100);
      await deliver(0);
      published += 100;
      await local.clock.advance(endSecond * SECOND_MS);
      for (let minute = 0; minute < 3; minute += 1) {
        await publish("a", 7);
        await deliver(0);
        published += 7;
        for (const range of ["1h", "24h", "7d"] as const) {
          const { totals, series, rows } = await read({ range, by: "action" });
          expect([range, totals.published, rows![0]!.published]).toEqual([range, published, published]);
          const shownInAll = series.published.reduce<number>((sum, count) => sum + (count ?? 0), 0);
          expect([range, shownInAll]).toEqual([range, published]);
        }
        await local.clock.advance(MINUTE_MS);
      }
    }
    expect((await read({ range: "1h" })).totals).toMatchObject({ published: 363, delivered: 12 });
  });

  it("count what failed for good without an attempt", async () => {
    await deliver(0, { ...FAILED, retryAfterMs: HOUR_MS });
    const { data } = await local.evreg.deliveries.list({ subscription: ids[0]!, status: "waiting" });
    await local.evreg.deliveries.skip(data[0]!.rowid);
    const { totals } = await read({ subscription: ids[0]! });
    expect(totals).toMatchObject({ failed_attempts: 1, failed: 1 });
  });

  it("agree with their rows after the clock was set back", async () => {
    await publish("a", 2);
    await local.clock.advance(3 * HOUR_MS + 30 * MINUTE_MS);
    await publish("a", 5);
    await local.clock.advance(2 * MINUTE_MS);
    for (const backMs of [20 * MINUTE_MS, 2 * HOUR_MS]) {
      local.clock.set(local.clock.now() - backMs);
      await publish("a", 1);
      for (const range of ["24h", "7d"] as const) {
        const { totals, rows } = await read({ range, by: "action" });
        expect([range, rows![0]!.published]).toEqual([range, totals.published]);
      }
    }
  });
});
