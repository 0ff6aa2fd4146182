import { CpuShare } from "./cpu-share.ts";
import { Latencies, type LatencySummary } from "./latencies.ts";
import { type LoadAnswer, LoadConnection } from "./load-connection.ts";
import { RequestBytes, type RequestSpec } from "./request-bytes.ts";

export interface PacedLoop {
  readonly port: number;
  readonly token?: string;
  /** Sent in turn. */
  readonly requests: readonly RequestSpec[];
  readonly connections: number;
  readonly ratePerS: number;
  /** Sent before counting begins. */
  readonly warmUpMs: number;
  readonly durationMs: number;
  /** Any other status fails the run. */
  readonly expect: number;
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
  /** @param which the request's place in `requests` */
  readonly onSend?: (which: number, sequence: number) => void;
  readonly onAnswer?: (answer: LoadAnswer, sent: Due) => void;
}

interface Due {
  readonly sequence: number;
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
  const { port, token, requests, connections, ratePerS, warmUpMs, durationMs, expect } = options;
  const failed = Promise.withResolvers<never>();
  // It may fail before anybody waits for it.
  failed.promise.catch(() => undefined);
  const idle = await Promise.all(
    Array.from({ length: connections }, async () => ({
      connection: await LoadConnection.open(
        port,
        (status) => hooks.keepsBodies || status !== expect,
        failed.reject,
      ),
      bytes: requests.map((request) => new RequestBytes(request, `127.0.0.1:${port}`, token)),
    })),
  );
  const open = [...idle];
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
  let nextNumber = 1;

  const send = (due: Due): void => {
    // The one that waited longest, as a server may close a connection on which nothing comes.
    const free = idle.shift();
    const bytes = free?.bytes[due.which];
    if (free === undefined || bytes === undefined) {
      waiting.push(due);
      return;
    }
    nextNumber = bytes.number(nextNumber);
    sent += 1;
    hooks.onSend?.(due.which, due.sequence);
    free.connection.send(bytes.bytes, (answer) => {
      if (answer.status !== expect) {
        const { path } = requests[due.which] ?? { path: "" };
        failed.reject(new Error(`${path} was answered with ${answer.status}: ${answer.body?.toString()}`));
        return;
      }
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
      send({ sequence, which: sequence % requests.length, atMs, counts });
    }
    if (sequence < total) setTimeout(tick, 1);
    else setTimeout(finished.resolve, LONGEST_WAIT_MS);
  };
  tick();
  try {
    await Promise.race([finished.promise, failed.promise]);
  } finally {
    // After a failure the schedule must not go on.
    sequence = total;
    for (const { connection } of open) connection.close();
  }
  return {
    answered,
    unsent: total - sent,
    latencies: latencies.map((each) => each.summary()),
    lateness: lateness.summary(),
    loadShare: cpu.read().mainThread,
  };
}
