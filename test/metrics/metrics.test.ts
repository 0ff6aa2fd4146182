import { describe, expect, test } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { CommitCounts, DeliveryCounts, PublishCounts, StreamCounts } from "../../src/metrics/counters.ts";
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
    clock,
    version: "1",
    ...changes,
  });
  return async () => parseMetrics(await registry.metrics());
}

describe("the metrics", () => {
  test("read the backlog from the store once for all that ask for it at the same time", () =>
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
      expect(reads).toBe(1);
      await read();
      expect(reads).toBe(2);
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
