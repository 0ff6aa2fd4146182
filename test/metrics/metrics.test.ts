import { describe, expect, test } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import {
  CommitCounts,
  DeliveryCounts,
  EventLoopMonitor,
  PublishCounts,
  StreamCounts,
} from "../../src/metrics/counters.ts";
import { createMetrics, type MetricSources } from "../../src/metrics/registry.ts";
import { type LocalService, openLocalService } from "../support/local-service.ts";
import { parseMetrics, valueOf } from "../support/prometheus.ts";

async function withStore(run: (local: LocalService) => Promise<void>): Promise<void> {
  const local = await openLocalService();
  try {
    await run(local);
  } finally {
    await local.close();
  }
}

function metricsOf({ clock, store }: LocalService, changes: Partial<MetricSources> = {}) {
  const registry = createMetrics({
    published: new PublishCounts(),
    delivered: new DeliveryCounts(),
    commits: new CommitCounts(),
    streamed: new StreamCounts(),
    store,
    engineState: () => "stopped",
    loop: new EventLoopMonitor(),
    clock,
    version: "1",
    ...changes,
  });
  return async () => parseMetrics(await registry.metrics());
}

describe("the metrics", () => {
  test("read the backlog from the store once a second, however many ask for it", () =>
    withStore(async (local) => {
      let reads = 0;
      const store = {
        ...local.store,
        queue: {
          ...local.store.queue,
          backlog: (nowMs: number) => ((reads += 1), local.store.queue.backlog(nowMs)),
        },
      };
      const read = metricsOf(local, { store });
      await Promise.all(Array.from({ length: 50 }, () => read()));
      await local.clock.advance(999);
      await read();
      expect(reads).toBe(1);
      await local.clock.advance(1);
      await read();
      expect(reads).toBe(2);
      local.clock.set(local.clock.now() - 60_000);
      await local.clock.advance(1_000);
      await read();
      expect(reads).toBe(3);
    }));

  test("are reported without the backlog while the store is unavailable", () =>
    withStore(async (local) => {
      const store = {
        queue: {
          ...local.store.queue,
          backlog: () => Promise.reject(new EvregError("unavailable", "No.")),
        },
        health: () => ({ status: "unavailable", reason: "x" }) as const,
      };
      const metrics = await metricsOf(local, { store })();
      expect(metrics.get("evreg_backlog_deliveries")?.series).toEqual([]);
      expect(valueOf(metrics, "evreg_store_available")).toBe(0);
      expect(valueOf(metrics, "evreg_engine_running")).toBe(0);
    }));

  test("report for how long the oldest delivery has been due", () =>
    withStore(async (local) => {
      const { evreg, clock } = local;
      await evreg.actions.create({ action: "a", application: "x", schemata: {} });
      const target = { subscription: "s", action: "a", handler: "https://hooks.example.com/" };
      await evreg.subscriptions.create({ application: "x", ...target });
      const { data: paused } = await evreg.subscriptions.create({ application: "y", ...target });
      await evreg.events.publish({ action: "a", payload: RawJson.fromText("{}") });
      await evreg.subscriptions.update(paused.rowid, { active: false });
      await clock.advance(90_000);
      const metrics = await metricsOf(local)();
      for (const state of ["due", "held"]) {
        expect(valueOf(metrics, "evreg_backlog_deliveries", { state })).toBe(1);
        expect(valueOf(metrics, "evreg_backlog_oldest_age_seconds", { state })).toBe(90);
      }
      expect(valueOf(metrics, "evreg_backlog_oldest_age_seconds", { state: "delivering" })).toBe(0);
    }));
});

describe("the event loop monitor", () => {
  test("reports a stall until some time without one has passed", async () => {
    const loop = new EventLoopMonitor();
    expect(loop.read(0)).toBeUndefined();
    loop.start(0);
    try {
      await turn();
      const endMs = performance.now() + 150;
      while (performance.now() < endMs);
      await turn();
      const stalled = loop.read(9_000);
      expect(stalled?.maxSeconds).toBeGreaterThan(0.1);
      expect(stalled?.maxSeconds).toBeGreaterThanOrEqual(stalled?.p99Seconds ?? Infinity);
      expect(stalled?.p99Seconds).toBeGreaterThanOrEqual(stalled?.medianSeconds ?? Infinity);
      const kept = loop.read(10_000);
      expect(kept?.maxSeconds).toBeGreaterThan(0.1);
      // A second reader gets the same period.
      expect(loop.read(19_000)).toBe(kept);
      // A busy machine makes stalls of its own, so it may not be the next period that has none.
      for (let atMs = 20_000; (loop.read(atMs)?.maxSeconds ?? 1) >= 0.1; atMs += 10_000) await turn();
    } finally {
      loop.stop();
    }
    expect(loop.read(30_000)).toBeUndefined();
  });
});

/** A few ticks of the monitor. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, 120);
  });
}
