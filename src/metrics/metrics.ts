import { Registry } from "prom-client";
import type { DeliveryCounts } from "../delivery/delivery-counts.ts";
import type { Health } from "../domain/health.ts";
import type { Clock } from "../runtime/clock.ts";
import type { PublishCounts } from "../runtime/publish-counts.ts";
import type { Store } from "../store/store.ts";
import { addBacklogMetrics } from "./backlog-metrics.ts";
import { addEventMetrics } from "./event-metrics.ts";
import { Instruments } from "./instruments.ts";
import type { LoopWatch } from "./loop-watch.ts";
import { addProcessMetrics } from "./process-metrics.ts";
import { addStoreMetrics } from "./store-metrics.ts";

/** Where the values are. */
export interface MetricSources {
  readonly published: PublishCounts;
  readonly delivered: DeliveryCounts;
  readonly store: Pick<Store, "commits" | "condition" | "countBacklog" | "damagedEvents">;
  readonly engineState: () => Health["engine"];
  readonly loop: LoopWatch;
  readonly clock: Clock;
  readonly version: string;
}

/**
 * All metrics of one evreg. No label names an application, a subscription or an action: how many series there are does not
 * depend on what is stored, and nobody learns a name from them.
 */
export function createMetrics(sources: MetricSources): Registry {
  const { published, delivered, store, engineState, loop, clock, version } = sources;
  const registry = new Registry();
  const instruments = new Instruments(registry);
  addEventMetrics(instruments, published, delivered);
  addBacklogMetrics(instruments, store, clock);
  addStoreMetrics(instruments, store, () => engineState() === "running");
  addProcessMetrics(instruments, { version, loop, clock });
  return registry;
}
