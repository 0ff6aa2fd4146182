import { performance } from "node:perf_hooks";
import type { Clock } from "../runtime/clock.ts";
import { byLabel, type Instruments, only } from "./instruments.ts";
import type { LoopWatch } from "./loop-watch.ts";

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
