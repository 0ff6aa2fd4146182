import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Stats, StatsQuery } from "../../src/domain/stats/stats.ts";
import type { DeliveryResult } from "../../src/domain/stream.ts";
import { LOCAL_OWNER, type Principal } from "../../src/domain/token.ts";
import { StatsCounts } from "../../src/metrics/stats/stats-counts.ts";
import { Access } from "../../src/service/auth.ts";
import { StatsReader } from "../../src/service/stats/stats-reader.ts";
import { StatsRecorder } from "../../src/service/stats/recorder.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { newAction, newSubscription } from "../contract/harness.ts";
import { type LocalService, openLocalService } from "../support/local-service.ts";

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

/** The values that are not zero, by the step counted from the last one, which is 0. */
function shown(column: readonly (number | null)[]): Record<number, number | null> {
  const values = column.map((value, index) => [index - column.length + 1, value] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== 0));
}

describe("figures that were stored", () => {
  let local: LocalService;
  let stats: StatsCounts;
  let recorder: StatsRecorder;
  let reader: StatsReader;
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
    start();
  });
  afterEach(async () => {
    await recorder.stop();
    await local.close();
  });

  /** As a server does, with nothing counted yet. */
  function start(): void {
    const { store, clock } = local;
    stats = new StatsCounts(clock.now());
    reader = new StatsReader({ store, clock, stats });
    recorder = new StatsRecorder({ stats, store: store.stats, clock, logger: silentLogger });
    recorder.start();
  }

  const read = async (query: StatsQuery, principal: Principal = LOCAL_OWNER): Promise<Stats> =>
    (await reader.read(new Access(principal), query)).data;

  function publish(action: string, count: number): void {
    for (let done = 0; done < count; done += 1) stats.published(action, "crm", local.clock.now());
  }

  function deliver(subscription: number, given: Partial<DeliveryResult> = {}): void {
    const result = {
      rowid: 1,
      event_id: 1,
      subscription_id: ids[subscription]!,
      application: ["one", "two"][subscription]!,
      subscription: "",
      action: "a",
      status: "delivered",
      attempt: 1,
      status_code: 200,
      error_code: null,
      duration_ms: 8,
      timestamped: "",
      ...given,
    } as const;
    stats.attempted(result, given.status === undefined ? 12 : undefined, local.clock.now());
  }

  it("add up to the same, whatever of them is stored already", async () => {
    for (let minute = 0; minute < 65; minute += 1) {
      publish("a", 2);
      publish("b", 1);
      deliver(0);
      if (minute % 10 === 0) deliver(1, { status: "failed", status_code: 503 });
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
      refused: 0,
      delivered: 65,
      failed_attempts: 7,
      failed: 7,
      latency_ms: { p50: 12, p95: 12, p99: 12 },
      attempt_ms: { p50: 8, p95: 8, p99: 8 },
    });
    expect(shown(series.published.slice(-2))).toEqual({ [-1]: 180, 0: 15 });
    expect(series.published.slice(0, -2).every((value) => value === null)).toBe(true);
    expect(series.latency_p99_ms.slice(-2)).toEqual([12, 12]);
    const day = await read({ range: "24h", subscription: ids[1]! });
    expect(day.totals).toMatchObject({ published: 0, delivered: 0, failed_attempts: 7 });
    expect(shown(day.series.failed.slice(-5))).toEqual({ [-1]: 1, [-3]: 1 });
    const application = await read({ range: "7d", application: "two" });
    expect(application.totals).toMatchObject({ published: 0, failed: 7 });
  });

  it("survive a stop, and a gap stays one", async () => {
    publish("a", 5);
    await local.clock.advance(90 * SECOND_MS);
    publish("a", 7);
    await recorder.stop();
    await local.clock.advance(3 * HOUR_MS);
    start();
    publish("a", 1);
    await local.clock.advance(MINUTE_MS);
    const { series, totals } = await read({ range: "24h" });
    expect(totals.published).toBe(13);
    const known = series.published.flatMap((value, index) => (value === null ? [] : [index - 287]));
    expect(known).toEqual([-36, 0]);
    expect([series.published.at(-37), series.published.at(-1)]).toEqual([12, 1]);
  });

  it("show an hour after a restart, each minute spread over its steps", async () => {
    publish("a", 13);
    deliver(0);
    await local.clock.advance(MINUTE_MS);
    await recorder.stop();
    start();
    await local.clock.advance(MINUTE_MS);
    publish("a", 4);
    const { series, totals } = await read({ range: "1h" });
    expect(totals).toMatchObject({ published: 17, delivered: 1 });
    expect(series.published.slice(-13)).toEqual([2, 2, 2, 2, 2, 3, 0, 0, 0, 0, 0, 0, 4]);
    expect(series.latency_p50_ms.slice(-13, -6)).toEqual([12, 12, 12, 12, 12, 12, null]);
  });

  it("have all of the minute of a restart, by every range, before it is stored and after", async () => {
    for (const restartSecond of [5, 34]) {
      const before = (await read({ range: "24h" })).totals.published;
      publish("a", 100);
      deliver(0);
      await local.clock.advance(restartSecond * SECOND_MS);
      await recorder.stop();
      start();
      for (let minute = 0; minute < 3; minute += 1) {
        publish("a", 7);
        deliver(0);
        for (const range of ["1h", "24h", "7d"] as const) {
          const { totals, series, rows } = await read({ range, by: "action" });
          const published = before + 107 + 7 * minute;
          expect([range, totals.published, rows![0]!.published]).toEqual([range, published, published]);
          const shownInAll = series.published.reduce<number>((sum, count) => sum + (count ?? 0), 0);
          expect([range, shownInAll]).toEqual([range, published]);
        }
        await local.clock.advance(MINUTE_MS);
      }
      await local.clock.advance((60 - restartSecond) * SECOND_MS);
    }
    const { totals, series } = await read({ range: "1h" });
    expect(totals).toMatchObject({ published: 242, delivered: 8 });
    // Restarted at second 34, in the fourth step: the hundred are in the three before it.
    expect(series.published.slice(-25, -19)).toEqual([33, 33, 34, 7, 0, 0]);
  });

  it("are broken down by action and subscription, the busiest first, and those with nothing after them", async () => {
    for (let minute = 0; minute < 3; minute += 1) {
      publish("b", 4);
      deliver(1);
      deliver(1, { status: "waiting", status_code: null, error_code: "timeout" });
      await local.clock.advance(MINUTE_MS);
    }
    for (const range of ["5m", "1h", "24h", "7d"] as const) {
      const { rows: actions } = await read({ range, by: "action" });
      expect(actions).toMatchObject([
        { action: "b", application: "crm", published: 12, last_published_at: null },
        { action: "a", published: 0, delivered: 3, failed_attempts: 3, failed: 0 },
      ]);
      const { rows: subscriptions } = await read({ range, by: "subscription" });
      expect(subscriptions).toMatchObject([
        { subscription_id: ids[1], subscription: "two", action: "a", delivered: 3, last_error: "timeout" },
        { subscription_id: ids[0], delivered: 0, latency_ms: { p50: null }, last_error: null },
      ]);
      expect((await read({ range, by: "action", limit: 1 })).rows).toHaveLength(1);
      const seen = await read({ range, by: "subscription" }, { name: "crm", scopes: ["read:crm"] });
      expect([seen.rows, seen.totals.delivered, seen.totals.published]).toEqual([[], 0, 12]);
    }
  });

  it("agree with their rows after the clock was set back", async () => {
    publish("a", 2);
    await local.clock.advance(3 * HOUR_MS + 30 * MINUTE_MS);
    publish("a", 5);
    await local.clock.advance(2 * MINUTE_MS);
    for (const backMs of [20 * MINUTE_MS, 2 * HOUR_MS]) {
      await recorder.stop();
      local.clock.set(local.clock.now() - backMs);
      start();
      publish("a", 1);
      for (const range of ["24h", "7d"] as const) {
        const { totals, rows } = await read({ range, by: "action" });
        expect([range, rows![0]!.published]).toEqual([range, totals.published]);
      }
    }
  });

  it("are kept for 8 days", async () => {
    publish("a", 1);
    await local.clock.advance(2 * MINUTE_MS);
    const stored = async (): Promise<number> => {
      const startMs = Date.parse("2026-01-01T00:00:00.000Z");
      const range = { fromMs: startMs, toMs: startMs + MINUTE_MS, stepMs: MINUTE_MS, span: 1 } as const;
      return (await local.store.stats.steps(range)).length;
    };
    expect(await stored()).toBe(1);
    local.clock.pass(8 * 24 * HOUR_MS);
    // A round that has begun goes on before the next one is set.
    const aMinuteLater = async (): Promise<number> => {
      await local.clock.advance(MINUTE_MS);
      return stored();
    };
    await expect.poll(aMinuteLater).toBe(0);
  });
});
