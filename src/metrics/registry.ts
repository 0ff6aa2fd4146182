import { performance } from "node:perf_hooks";
import { Registry } from "prom-client";
import { ATTEMPT_ERROR_CODES } from "../domain/delivery.ts";
import type { Health } from "../domain/operations.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Backlog, DeliveryQueue } from "../store/queue.ts";
import type { Store, StoreAdmin } from "../store/store.ts";
import {
  type DeliveryCounts,
  FAILED_STATUS_CLASSES,
  type LoopWatch,
  type PublishCounts,
} from "./counters.ts";
import { byLabel, Instruments, only, type Sample } from "./instruments.ts";

/** Where the values are. */
export interface MetricSources {
  readonly published: PublishCounts;
  readonly delivered: DeliveryCounts;
  readonly store: Pick<Store, "queue" | "admin">;
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
  addBacklogMetrics(instruments, store.queue, clock);
  addStoreMetrics(instruments, store.admin, () => engineState() === "running");
  addProcessMetrics(instruments, { version, loop, clock });
  return registry;
}

/** What happened to events and deliveries since the start. */
export function addEventMetrics(
  instruments: Instruments,
  published: PublishCounts,
  delivered: DeliveryCounts,
): void {
  instruments.counter(
    {
      name: "evreg_events_published_total",
      help: "Events stored, by the way they were published; service: by evreg about itself.",
    },
    () => byLabel("via", { single: published.single, batch: published.batch, service: published.service }),
  );
  instruments.counter(
    {
      name: "evreg_events_replayed_total",
      help: "Publishes answered with the earlier event of their idempotency key; nothing was stored.",
    },
    () => byLabel("via", { single: published.replayedSingle, batch: published.replayedBatch }),
  );
  instruments.counter(
    {
      name: "evreg_events_refused_total",
      help: "Publish requests refused as a whole, and refused items of batches, by reason.",
    },
    () => byLabel("reason", published.refused),
  );
  instruments.counter(
    {
      name: "evreg_deliveries_queued_total",
      help: "Deliveries made due: together with their events, by replays, or, once they had ended, by a retry that a person asked for.",
    },
    () =>
      byLabel("by", {
        publish: published.queuedDeliveries,
        replay: published.replayedDeliveries,
        retry: published.retriedDeliveries,
      }),
  );
  instruments.counter(
    { name: "evreg_deliveries_finished_total", help: "Deliveries that came to their end, by outcome." },
    () => byLabel("outcome", delivered.finished),
  );
  instruments.counter(
    {
      name: "evreg_attempts_total",
      help: "Attempts that ended, by outcome and by the class of the answer's status or the error.",
    },
    () => attempts(delivered),
  );
  instruments.gauge({ name: "evreg_attempts_in_flight", help: "Attempts under way now." }, () =>
    only(delivered.inFlight()),
  );
  instruments.gauge(
    {
      name: "evreg_attempts_in_flight_limit",
      help: "Most attempts under way at once: of all subscriptions together, and most that the limit of one may grow to.",
    },
    () => {
      const { inFlight: service, perSubscription: subscription } = delivered.capacity;
      return byLabel("of", { service, subscription });
    },
  );
  instruments.histogram(
    { name: "evreg_attempt_duration_seconds", help: "From an attempt's beginning to its end." },
    delivered.attemptSeconds,
  );
  instruments.histogram(
    {
      name: "evreg_delivery_latency_seconds",
      help: "From an event's publishing to the end of the attempt that delivered it, retries included; without replays and what was sent again by hand.",
    },
    delivered.latencySeconds,
  );
}

function attempts({ deliveredAttempts, failedByStatus, failedByError }: DeliveryCounts): readonly Sample[] {
  return [
    attempt("delivered", "2xx", "", deliveredAttempts),
    ...FAILED_STATUS_CLASSES.map((status) => attempt("failed", status, "", failedByStatus[status])),
    ...ATTEMPT_ERROR_CODES.map((error) =>
      attempt(error === "interrupted" ? "returned" : "failed", "", error, failedByError[error]),
    ),
  ];
}

function attempt(outcome: string, status: string, error: string, value: number): Sample {
  return { labels: { outcome, status_class: status, error_code: error }, value };
}

const KEPT_MS = 1_000;
const STATES = ["due", "busy", "paced", "waiting", "delivering", "held"] as const;

/** What is unfinished. Where the store cannot be asked there are no values, and all other metrics are told as ever. */
export function addBacklogMetrics(
  instruments: Instruments,
  queue: Pick<DeliveryQueue, "backlog">,
  clock: Clock,
): void {
  const reading = new BacklogReading(queue, clock);
  const samples = async (of: (backlog: Backlog, atMs: number) => readonly Sample[]) => {
    const read = await reading.read();
    return read === undefined ? [] : of(read.backlog, read.atMs);
  };
  instruments.gauge(
    {
      name: "evreg_backlog_deliveries",
      help: "Unfinished deliveries: due now, due behind others of their subscription that are being delivered (busy), due at a rate limit (paced), waiting for their time or turn, being delivered, held as their subscription is paused.",
    },
    () =>
      samples((backlog) => STATES.map((state) => ({ labels: { state }, value: backlog[state].deliveries }))),
  );
  instruments.gauge(
    {
      name: "evreg_backlog_oldest_age_seconds",
      help: "For how long the first of them has been due, or (delivering) under way; 0 without one.",
    },
    () =>
      samples((backlog, atMs) =>
        STATES.filter((state) => state !== "waiting").map((state) => {
          const { sinceMs = atMs } = backlog[state];
          return { labels: { state }, value: Math.max(0, atMs - sinceMs) / 1_000 };
        }),
      ),
  );
  instruments.gauge(
    {
      name: "evreg_backlog_counted_fully",
      help: "1 when all of the backlog was counted; 0 when there is at least as much as evreg_backlog_deliveries says.",
    },
    () => samples(({ isWhole }) => only(isWhole ? 1 : 0)),
  );
}

interface BacklogRead {
  readonly backlog: Backlog;
  readonly atMs: number;
}

/** Asks the store once for all who ask within a second. */
class BacklogReading {
  readonly #queue: Pick<DeliveryQueue, "backlog">;
  readonly #clock: Clock;
  #latest: { readonly promise: Promise<BacklogRead | undefined>; readonly atMs: number } | undefined;
  #isUnderWay = false;

  constructor(queue: Pick<DeliveryQueue, "backlog">, clock: Clock) {
    this.#queue = queue;
    this.#clock = clock;
  }

  read(): Promise<BacklogRead | undefined> {
    const nowMs = this.#clock.now();
    const age = nowMs - (this.#latest?.atMs ?? -Infinity);
    if (this.#latest !== undefined && (this.#isUnderWay || (age >= 0 && age < KEPT_MS))) {
      return this.#latest.promise;
    }
    const promise = this.#ask(nowMs);
    this.#latest = { promise, atMs: nowMs };
    return promise;
  }

  async #ask(nowMs: number): Promise<BacklogRead | undefined> {
    this.#isUnderWay = true;
    try {
      return { backlog: await this.#queue.backlog(nowMs), atMs: nowMs };
    } catch {
      // Its condition is told by a metric of its own.
      return undefined;
    } finally {
      this.#isUnderWay = false;
    }
  }
}

/** Whether it works, and what committing takes. */
export function addStoreMetrics(
  instruments: Instruments,
  admin: Pick<StoreAdmin, "commits" | "health" | "damagedEvents">,
  isDelivering: () => boolean,
): void {
  instruments.gauge({ name: "evreg_store_available", help: "1 while the store commits." }, () =>
    only(admin.health().status === "ok" ? 1 : 0),
  );
  instruments.gauge({ name: "evreg_engine_running", help: "1 while deliveries are sent." }, () =>
    only(isDelivering() ? 1 : 0),
  );
  instruments.gauge(
    {
      name: "evreg_store_damaged_events",
      help: "Events found damaged in the data file since the start; at most 1,000 are counted.",
    },
    () => only(admin.damagedEvents().length),
  );
  instruments.gauge(
    {
      name: "evreg_store_checkpoint_failing",
      help: "1 while the log cannot be moved into the data file, and grows.",
    },
    () => only(admin.commits().isCheckpointFailing ? 1 : 0),
  );
  const { commitSeconds, transactionSeconds, writes } = admin.commits();
  instruments.histogram(
    {
      name: "evreg_store_commit_duration_seconds",
      help: "What making a transaction durable took, its fsync included.",
    },
    commitSeconds,
  );
  instruments.histogram(
    {
      name: "evreg_store_transaction_duration_seconds",
      help: "From a transaction's beginning until it was durable.",
    },
    transactionSeconds,
  );
  instruments.histogram(
    {
      name: "evreg_store_commit_writes",
      help: "Writes of the service and the engine that one transaction carried.",
    },
    writes,
  );
}

/** The process and the thread that answers and sends. Names that many programs share are theirs, not evreg's own. */
export function addProcessMetrics(
  instruments: Instruments,
  { version, loop, clock }: { readonly version: string; readonly loop: LoopWatch; readonly clock: Clock },
): void {
  instruments.gauge({ name: "evreg_build_info", help: "1, with the versions of evreg and Node." }, () => [
    { labels: { version, node: process.versions.node }, value: 1 },
  ]);
  instruments.gauge(
    {
      name: "evreg_event_loop_delay_seconds",
      help: "How late the event loop of the thread that answers and sends was, over the last stretch of 10 seconds or more.",
    },
    () => {
      const delays = loop.read(clock.now());
      if (delays === undefined) return [];
      const { medianSeconds, p99Seconds, maxSeconds } = delays;
      return [
        { labels: { quantile: "0.5" }, value: medianSeconds },
        { labels: { quantile: "0.99" }, value: p99Seconds },
        { labels: { quantile: "1" }, value: maxSeconds },
      ];
    },
  );
  instruments.counter(
    {
      name: "evreg_event_loop_active_seconds_total",
      help: "Time that this thread's event loop was not waiting for anything to do.",
    },
    () => only(performance.eventLoopUtilization().active / 1_000),
  );
  instruments.counter(
    { name: "process_cpu_seconds_total", help: "CPU time of all threads, by what it was used for." },
    () => {
      const { user, system } = process.cpuUsage();
      return byLabel("mode", { user: user / 1e6, system: system / 1e6 });
    },
  );
  instruments.gauge({ name: "process_resident_memory_bytes", help: "Memory of all threads." }, () =>
    only(process.memoryUsage.rss()),
  );
  instruments.gauge(
    { name: "process_start_time_seconds", help: "When the process was started, since the epoch." },
    () => only(performance.timeOrigin / 1_000),
  );
  instruments.gauge(
    { name: "nodejs_heap_size_used_bytes", help: "Heap in use by the thread that answers and sends." },
    () => only(process.memoryUsage().heapUsed),
  );
}
