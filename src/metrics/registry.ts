import { performance } from "node:perf_hooks";
import { type Metric, Registry } from "prom-client";
import { ATTEMPT_ERROR_CODES } from "../model/delivery.ts";
import type { Health } from "../domain/operations.ts";
import { BACKLOG_CAUSES, type StatsBacklog } from "../domain/stats/stats.ts";
import { BUILD } from "../runtime/build.ts";
import type { Clock } from "../runtime/clock.ts";
import type { DeliveryQueue } from "../store/queue.ts";
import { ALL_SHARDS } from "../store/rules/shards.ts";
import type { Store } from "../store/store.ts";
import { type EngineCounts, FAILED_STATUS_CLASSES, type Histogram, type PublishCounts } from "./counters.ts";

/** Where the values are. */
export interface MetricSources {
  readonly published: PublishCounts;
  readonly delivered: EngineCounts;
  readonly commits: Histogram;
  readonly streamsOpen: () => number;
  readonly store: Pick<Store, "queue" | "node" | "damagedEvents" | "health">;
  readonly engineState: () => Health["engine"];
  readonly clock: Clock;
  readonly version: string;
}

/**
 * All metrics of one evreg. No label names an application, a subscription or an action: how many series there are does not
 * depend on what is stored, and nobody learns a name from them.
 */
export function createMetrics(sources: MetricSources): Registry {
  const registry = new Registry();
  const instruments = instrumentsOf(registry);
  addEventMetrics(instruments, sources);
  addDeliveryMetrics(instruments, sources);
  addBacklogMetrics(instruments, sources);
  addStoreMetrics(instruments, sources);
  addProcessMetrics(instruments, sources);
  return registry;
}

/** A metric's value; its values by its one label; or each with its labels. */
type Reading = number | Readonly<Record<string, number>> | readonly MetricValue[];

/** @param name with its unit; a counter's ends in `_total` */
type Add = (name: string, help: string, read: () => Reading | Promise<Reading>, label?: string) => void;

type Instruments = ReturnType<typeof instrumentsOf>;

/** What prom-client asks a metric for at a scrape: values with their labels, and with their name where it is another. */
interface MetricValue {
  readonly metricName?: string;
  readonly labels?: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/**
 * Adds metrics that are read at a scrape. What happens is counted in plain numbers (`counters.ts`): an `inc()` of prom-client
 * with labels costs fifteen times an addition, and an `observe()` three times ours. So of it the text alone is used.
 */
function instrumentsOf(registry: Registry) {
  type Values = () => readonly MetricValue[] | Promise<readonly MetricValue[]>;
  const add = (type: "counter" | "gauge" | "histogram", name: string, help: string, values: Values): void => {
    const metric = { name, get: async () => ({ name, help, type, values: await values() }) };
    registry.registerMetric(metric as unknown as Metric);
  };
  const adder =
    (type: "counter" | "gauge"): Add =>
    (name, help, read, label) =>
      add(type, name, help, async () => valuesOf(await read(), label));
  return {
    counter: adder("counter"),
    gauge: adder("gauge"),
    histogram: (name: string, help: string, source: Histogram): void =>
      add("histogram", name, help, () => {
        let count = 0;
        const buckets = [...source.bounds, "+Inf"].map((le, index) => {
          count += source.counts[index]!;
          return { metricName: `${name}_bucket`, labels: { le }, value: count };
        });
        const sum = { metricName: `${name}_sum`, value: source.sum };
        return [...buckets, sum, { metricName: `${name}_count`, value: count }];
      }),
  };
}

function valuesOf(reading: Reading, label = ""): readonly MetricValue[] {
  if (typeof reading === "number") return [{ value: reading }];
  if (Array.isArray(reading)) return reading as readonly MetricValue[];
  return Object.entries(reading).map(([name, value]) => ({ value, labels: { [label]: name } }));
}

/** Events since the start, and who watches them. */
function addEventMetrics({ counter, gauge }: Instruments, { published, streamsOpen }: MetricSources): void {
  counter(
    "evreg_events_published_total",
    "Events stored, by the way they were published; service: by evreg about itself.",
    () => ({ single: published.single, batch: published.batch, service: published.service }),
    "via",
  );
  counter(
    "evreg_events_replayed_total",
    "Publishes answered with the earlier event of their idempotency key; nothing was stored.",
    () => ({ single: published.replayedSingle, batch: published.replayedBatch }),
    "via",
  );
  counter(
    "evreg_events_refused_total",
    "Publish requests refused as a whole, and refused items of batches, by reason.",
    () => published.refused,
    "reason",
  );
  gauge("evreg_streams_open", "Streams that are open now.", streamsOpen);
}

/** Deliveries and attempts since the start. */
function addDeliveryMetrics(
  { counter, gauge, histogram }: Instruments,
  { published, delivered }: MetricSources,
): void {
  counter(
    "evreg_deliveries_queued_total",
    "Deliveries made due: together with their events, by replays, or, once they had ended, by a retry that a person asked for.",
    () => ({
      publish: published.queuedDeliveries,
      replay: published.replayedDeliveries,
      retry: published.retriedDeliveries,
    }),
    "by",
  );
  counter(
    "evreg_deliveries_finished_total",
    "Deliveries that came to their end, by outcome.",
    () => delivered.finished,
    "outcome",
  );
  counter(
    "evreg_attempts_total",
    "Attempts that ended, by outcome and by the class of the answer's status or the error.",
    () => attempts(delivered),
  );
  gauge("evreg_attempts_in_flight", "Attempts under way now.", () => delivered.inFlight());
  gauge(
    "evreg_attempts_in_flight_limit",
    "Most attempts under way at once: of all subscriptions together, and most that the limit of one may grow to.",
    () => ({ service: delivered.capacity.inFlight, subscription: delivered.capacity.perSubscription }),
    "of",
  );
  histogram(
    "evreg_attempt_duration_seconds",
    "From an attempt's beginning to its end.",
    delivered.attemptSeconds,
  );
  histogram(
    "evreg_delivery_latency_seconds",
    "From an event's publishing to the end of the attempt that delivered it, retries included; without replays and what was sent again by hand.",
    delivered.latencySeconds,
  );
}

function attempts({ deliveredAttempts, failedByStatus, failedByError }: EngineCounts): Reading {
  return [
    attemptsThat("delivered", "2xx", "", deliveredAttempts),
    ...FAILED_STATUS_CLASSES.map((status) => attemptsThat("failed", status, "", failedByStatus[status])),
    ...ATTEMPT_ERROR_CODES.map((error) =>
      attemptsThat(error === "interrupted" ? "returned" : "failed", "", error, failedByError[error]),
    ),
  ];
}

function attemptsThat(outcome: string, status: string, error: string, value: number): MetricValue {
  return { value, labels: { outcome, status_class: status, error_code: error } };
}

/** What is unfinished. Where the store cannot be read these have no values; all other metrics have. */
function addBacklogMetrics({ gauge }: Instruments, { store, clock }: MetricSources): void {
  const read = backlogReader(store.queue, clock);
  gauge(
    "evreg_backlog_deliveries",
    "Unfinished deliveries: due now, due behind others of their subscription that are being delivered (busy), due at a rate limit (paced), waiting for their time or turn, behind one that blocks (blocked), being delivered, held as their subscription is paused.",
    () =>
      read((backlog) =>
        Object.fromEntries(BACKLOG_CAUSES.map((state) => [state, backlog[state].deliveries])),
      ),
    "state",
  );
  gauge(
    "evreg_backlog_oldest_age_seconds",
    "For how long the first of them has been due, or (delivering) under way; 0 without one.",
    () =>
      read((backlog, atMs) => {
        const aged = BACKLOG_CAUSES.filter((state) => state !== "waiting");
        const ageMs = (since: string | null): number =>
          since === null ? 0 : Math.max(0, atMs - Date.parse(since));
        return Object.fromEntries(aged.map((state) => [state, ageMs(backlog[state].since) / 1_000]));
      }),
    "state",
  );
  gauge(
    "evreg_backlog_counted_fully",
    "1 when all of the backlog was counted; 0 when there is at least as much as evreg_backlog_deliveries says.",
    () => read(({ is_whole: isWhole }) => Number(isWhole)),
  );
}

/** Reads the backlog once for all metrics of a scrape; no values while the store cannot be read. */
function backlogReader(queue: Pick<DeliveryQueue, "backlog">, clock: Clock) {
  let reading: Promise<readonly [StatsBacklog | undefined, atMs: number]> | undefined;
  const readOnce = async (): Promise<readonly [StatsBacklog | undefined, atMs: number]> => {
    const nowMs = clock.now();
    const backlog = await queue.backlog(nowMs).catch(() => undefined);
    reading = undefined;
    return [backlog, nowMs];
  };
  return async (readingOf: (backlog: StatsBacklog, atMs: number) => Reading): Promise<Reading> => {
    const [backlog, atMs] = await (reading ??= readOnce());
    return backlog === undefined ? [] : readingOf(backlog, atMs);
  };
}

/** Whether it works, and what committing takes. */
function addStoreMetrics(
  { gauge, histogram }: Instruments,
  { store, commits, engineState }: MetricSources,
): void {
  gauge("evreg_store_available", "1 while the store commits.", () => Number(store.health().status === "ok"));
  gauge("evreg_engine_running", "1 while deliveries are sent.", () => Number(engineState() === "running"));
  gauge(
    "evreg_store_damaged_events",
    "Events found damaged since the start; at most 1,000 are counted.",
    () => store.damagedEvents().length,
  );
  gauge(
    "evreg_node_shards",
    "Of the 128 parts of the subscriptions those whose deliveries this node sends: all on a data folder.",
    () => ALL_SHARDS.filter((id) => store.node.owns(id)).length,
  );
  histogram(
    "evreg_store_commit_duration_seconds",
    "What making a transaction durable took, its fsync included.",
    commits,
  );
}

/** The process and the thread that answers and sends. Names that many programs share are theirs, not evreg's own. */
function addProcessMetrics({ counter, gauge }: Instruments, { version }: MetricSources): void {
  // An empty label is one that is not there.
  const { commit = "", date = "" } = BUILD ?? {};
  const labels = { version, node: process.versions.node, commit, date };
  const about =
    "1, with the versions of evreg and Node, and the commit that evreg was built from and its date.";
  gauge("evreg_build_info", about, () => [{ value: 1, labels }]);
  counter(
    "evreg_event_loop_active_seconds_total",
    "Time that this thread's event loop was not waiting for anything to do.",
    () => performance.eventLoopUtilization().active / 1_000,
  );
  counter(
    "process_cpu_seconds_total",
    "CPU time of all threads, by what it was used for.",
    () => {
      const { user, system } = process.cpuUsage();
      return { user: user / 1e6, system: system / 1e6 };
    },
    "mode",
  );
  gauge("process_resident_memory_bytes", "Memory of all threads.", () => process.memoryUsage.rss());
  gauge(
    "process_start_time_seconds",
    "When the process was started, since the epoch.",
    () => performance.timeOrigin / 1_000,
  );
  gauge(
    "nodejs_heap_size_used_bytes",
    "Heap in use by the thread that answers and sends.",
    () => process.memoryUsage().heapUsed,
  );
}
