import { CpuShare } from "./cpu-share.ts";
import { Latencies, type LatencySummary } from "./latencies.ts";
import { type LoadAnswer, type LoadTarget, openConnections } from "./load-connection.ts";
import type { RequestSpec } from "./workload.ts";

export interface PacedLoop extends LoadTarget {
  /** Sent in turn. */
  readonly requests: readonly RequestSpec[];
  readonly ratePerS: number;
}

export interface PacedLoopResult {
  /** Those of the warm-up included. */
  readonly answered: number;
  /** Due, and never sent because no connection came free within `LONGEST_WAIT_MS` after the end. */
  readonly unsent: number;
  /** From when a request was due to its whole answer, for each of the requests. */
  readonly latencies: readonly LatencySummary[];
  /** From when a request was due until this process looked: what it is late itself. */
  readonly lateness: LatencySummary;
  /** Of a core, by the thread that sends and reads. */
  readonly loadShare: number;
}

export interface PacedHooks {
  readonly keepsBodies: boolean;
  readonly onAnswer?: (answer: LoadAnswer, sent: Due) => void;
}

interface Due {
  /** The request's place in `requests`. */
  readonly which: number;
  /** By `performance.now()`. */
  readonly atMs: number;
  readonly counts: boolean;
}

const LONGEST_WAIT_MS = 5_000;

/**
 * Sends on a schedule that does not wait for answers; what finds no free connection waits for one, and its time counts
 * from when it was due.
 */
export async function pace(options: PacedLoop, hooks: PacedHooks): Promise<PacedLoopResult> {
  const { requests, ratePerS, warmUpMs, durationMs } = options;
  const connections = await openConnections(options, requests, hooks.keepsBodies);
  const idle = [...connections.all];
  const latencies = requests.map(() => new Latencies());
  const lateness = new Latencies();
  const waiting: Due[] = [];
  const finished = Promise.withResolvers<void>();
  const startMs = performance.now();
  const total = Math.round(((warmUpMs + durationMs) / 1_000) * ratePerS);
  const cpu = new CpuShare();
  let sequence = 0;
  let sent = 0;
  let answered = 0;

  const send = (due: Due): void => {
    // The one that waited longest, as a server may close a connection on which nothing comes.
    const free = idle.shift();
    if (free === undefined) {
      waiting.push(due);
      return;
    }
    sent += 1;
    connections.send(free, due.which, (answer) => {
      answered += 1;
      if (due.counts) latencies[due.which]?.add(performance.now() - due.atMs);
      hooks.onAnswer?.(answer, due);
      idle.push(free);
      const next = waiting.shift();
      if (next !== undefined) send(next);
      else if (answered === total) finished.resolve();
    });
  };

  const tick = (): void => {
    const nowMs = performance.now();
    for (; sequence < total; sequence += 1) {
      const atMs = startMs + (sequence / ratePerS) * 1_000;
      if (atMs > nowMs) break;
      const counts = atMs >= startMs + warmUpMs;
      if (counts) lateness.add(nowMs - atMs);
      send({ which: sequence % requests.length, atMs, counts });
    }
    if (sequence < total) setTimeout(tick, 1);
    else setTimeout(finished.resolve, LONGEST_WAIT_MS);
  };
  tick();
  try {
    await connections.during(finished.promise);
  } finally {
    // After a failure the schedule must not go on.
    sequence = total;
  }
  return {
    answered,
    unsent: total - sent,
    latencies: latencies.map((each) => each.summary()),
    lateness: lateness.summary(),
    loadShare: cpu.read().mainThread,
  };
}
