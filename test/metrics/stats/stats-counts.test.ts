import { beforeEach, describe, expect, it } from "vitest";
import type { DeliveryResult } from "../../../src/domain/stream.ts";
import type { Series } from "../../../src/metrics/stats/series.ts";
import { addRun, StatsCounts } from "../../../src/metrics/stats/stats-counts.ts";
import { Tally } from "../../../src/metrics/stats/tally.ts";

const MINUTE_MS = 60_000;
const START = Date.parse("2026-01-01T00:00:00.000Z");

const RESULT: DeliveryResult = {
  rowid: 1,
  event_id: 1,
  subscription_id: 7,
  application: "crm",
  subscription: "mailer",
  action: "user.created",
  status: "delivered",
  attempt: 1,
  status_code: 200,
  error_code: null,
  duration_ms: 12,
  timestamped: "",
};

describe("figures in memory", () => {
  let stats: StatsCounts;
  beforeEach(() => (stats = new StatsCounts(START)));

  const publish = (atMs: number, times = 1, action = "user.created"): void => {
    for (let time = 0; time < times; time += 1) stats.published(action, "crm", START + atMs);
  };

  function published(
    stepMs: number,
    fromMs: number,
    nowMs: number,
    of: (series: Series) => boolean = () => true,
  ) {
    const found: Record<number, number> = {};
    stats.visitSteps(stepMs, START + fromMs, START + nowMs, (startMs, slot) => {
      const tally = new Tally();
      for (const run of stats.runs(slot, of)) addRun(tally, slot, run);
      if (tally.published > 0) found[startMs - START] = tally.published;
    });
    return found;
  }

  it("are counted by the second and by ten seconds, the present ones included", () => {
    publish(0, 3);
    publish(999);
    publish(1_000, 2);
    publish(25_000, 5);
    expect(published(1_000, 0, 25_000)).toEqual({ 0: 4, 1_000: 2, 25_000: 5 });
    expect(published(10_000, 0, 25_000)).toEqual({ 0: 6, 20_000: 5 });
    expect(published(1_000, 5_000, 90_000)).toEqual({ 25_000: 5 });
    expect(published(10_000, 0, 90_000)).toEqual({ 0: 6, 20_000: 5 });
  });

  it("lose none where more come in a second than are logged at once", () => {
    publish(10, 20_000);
    publish(10, 20_000, "user.deleted");
    expect(published(1_000, 0, 10)).toEqual({ 0: 40_000 });
    expect(published(1_000, 0, 10, ({ action }) => action === "user.deleted")).toEqual({ 0: 20_000 });
  });

  it("keep 5 minutes and an hour", () => {
    for (let ms = 0; ms <= 2 * 3_600_000; ms += 500) publish(ms);
    const nowMs = 2 * 3_600_000;
    expect(Object.keys(published(1_000, 0, nowMs))).toHaveLength(301);
    expect(Object.keys(published(10_000, 0, nowMs))).toHaveLength(361);
    expect(stats.wholeFromMs(1_000) - START).toBe(nowMs - 300_000);
    expect(stats.wholeFromMs(10_000) - START).toBe(nowMs - 3_600_000);
  });

  it("go to a minute once it has ended, and wait there until they are stored", () => {
    publish(0);
    publish(MINUTE_MS - 1);
    expect(stats.takeEnded(START + MINUTE_MS - 1)).toEqual([]);
    publish(3 * MINUTE_MS, 4);
    const [minute, ...others] = stats.takeEnded(START + 3 * MINUTE_MS + 1);
    expect([minute!.startMs, others]).toEqual([START, []]);
    expect(stats.unstored(START + 3 * MINUTE_MS + 1).map(({ startMs }) => startMs - START)).toEqual([
      0,
      3 * MINUTE_MS,
    ]);
    stats.stored(minute!);
    expect(stats.takeEnded(START + 3 * MINUTE_MS + 1)).toEqual([]);
    expect(stats.takeEnded(START + 3 * MINUTE_MS + 1, { all: true })).toHaveLength(1);
    publish(3 * MINUTE_MS + 2);
    expect(stats.takeEnded(START + 4 * MINUTE_MS)).toHaveLength(2);
  });

  it("go on with the latest second where the clock goes back a little, and begin anew where it goes back far", () => {
    publish(100_000, 2);
    publish(90_000);
    expect(published(1_000, 0, 100_000)).toEqual({ 100_000: 3 });
    publish(-3_600_000, 7);
    expect(published(1_000, -3_600_000, -3_600_000)).toEqual({ [-3_600_000]: 7 });
    expect(stats.takeEnded(START - 3_600_000)).toHaveLength(1);
  });

  it("tell attempts that delivered from those that failed, and leave out what was cut short or filtered", () => {
    stats.attempted(RESULT, 40, START);
    stats.attempted({ ...RESULT, status: "waiting", status_code: 500 }, undefined, START);
    stats.attempted(
      { ...RESULT, status: "failed", status_code: null, error_code: "timeout" },
      undefined,
      START,
    );
    stats.attempted({ ...RESULT, status: "pending", error_code: "interrupted" }, undefined, START);
    stats.attempted({ ...RESULT, status: "filtered", duration_ms: null }, undefined, START);
    const tally = new Tally();
    let last: Series | undefined;
    stats.visitSteps(1_000, START, START, (_start, slot) => {
      for (const run of stats.runs(slot, () => true)) {
        last = run.series;
        addRun(tally, slot, run);
      }
    });
    expect(tally.figures()).toEqual({
      published: 0,
      refused: 0,
      delivered: 1,
      failed_attempts: 2,
      failed: 1,
      latency_ms: { p50: 41, p95: 41, p99: 41 },
      attempt_ms: { p50: 12, p95: 12, p99: 12 },
    });
    expect(last).toMatchObject({ subscription: 7, action: "user.created", lastError: "timeout" });
  });

  it("count a refusal once, for its action if that is known", () => {
    const failure = new Error("no");
    stats.refused(failure, START, "user.created", "crm");
    stats.refused(failure, START);
    stats.refused(new Error("no"), START);
    const found: string[] = [];
    stats.visitSteps(1_000, START, START, (_start, slot) => {
      for (const run of stats.runs(slot, () => true)) {
        const tally = new Tally();
        addRun(tally, slot, run);
        found.push(`${run.series.action} ${tally.refused}`);
      }
    });
    expect(found.toSorted()).toEqual([" 1", "user.created 1"]);
  });

  it("take no more memory for what had no traffic in the last hour, nor for more series than are kept", () => {
    for (let id = 0; id < 1_000; id += 1) publish(0, 1, `action.${id}`);
    expect(stats.series.size).toBe(1_000);
    for (let minute = 1; minute < 70; minute += 1) publish(minute * MINUTE_MS);
    expect(stats.series.size).toBe(1);
    for (let id = 0; id < 110_000; id += 1) publish(80 * MINUTE_MS, 1, `action.${id}`);
    expect(stats.series.size).toBe(100_001);
    expect(published(1_000, 80 * MINUTE_MS, 80 * MINUTE_MS)).toEqual({ [80 * MINUTE_MS]: 110_000 });
  });
});
