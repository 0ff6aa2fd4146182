import { CpuShare } from "./cpu-share.ts";
import { Latencies, type LatencySummary } from "./latencies.ts";
import { LoadConnection } from "./load-connection.ts";
import { RequestBytes, type RequestSpec } from "./request-bytes.ts";

export interface ClosedLoop {
  readonly port: number;
  readonly token?: string;
  readonly request: RequestSpec;
  readonly connections: number;
  /** Sent before counting begins. */
  readonly warmUpMs: number;
  readonly durationMs: number;
  /** Any other status fails the run. */
  readonly expect: number;
}

export interface ClosedLoopResult {
  readonly ratePerS: number;
  /** From sending to the whole answer. */
  readonly latency: LatencySummary;
  /** Of a core, by the thread that sends and reads: near 1 the load itself is the limit. */
  readonly loadShare: number;
  /** With those before and after the counted time. */
  readonly answeredInAll: number;
}

/** Each connection sends its next request as soon as it has the answer to the one before. */
export async function runClosedLoop(options: ClosedLoop): Promise<ClosedLoopResult> {
  const { port, token, request, connections, warmUpMs, durationMs, expect } = options;
  const failed = Promise.withResolvers<never>();
  // It may fail before anybody waits for it.
  failed.promise.catch(() => undefined);
  const open = await Promise.all(
    Array.from({ length: connections }, async () => ({
      connection: await LoadConnection.open(port, (status) => status !== expect, failed.reject),
      bytes: new RequestBytes(request, `127.0.0.1:${port}`, token),
    })),
  );
  const latencies = new Latencies();
  const countFromMs = performance.now() + warmUpMs;
  const untilMs = countFromMs + durationMs;
  let cpu: CpuShare | undefined;
  let answered = 0;
  let nextNumber = 1;
  let loadShare = 0;

  const all = open.map(
    ({ connection, bytes }) =>
      new Promise<void>((resolve) => {
        const sendNext = (): void => {
          nextNumber = bytes.number(nextNumber);
          const sentMs = performance.now();
          connection.send(bytes.bytes, ({ status, body }) => {
            if (status !== expect) {
              failed.reject(new Error(`${request.path} was answered with ${status}: ${body?.toString()}`));
              return;
            }
            answered += 1;
            const nowMs = performance.now();
            if (nowMs >= untilMs) {
              loadShare ||= cpu?.read().mainThread ?? 0;
              resolve();
              return;
            }
            if (nowMs >= countFromMs) {
              cpu ??= new CpuShare();
              latencies.add(nowMs - sentMs);
            }
            sendNext();
          });
        };
        sendNext();
      }),
  );
  try {
    await Promise.race([Promise.all(all), failed.promise]);
  } finally {
    for (const { connection } of open) connection.close();
  }
  const latency = latencies.summary();
  return { ratePerS: latency.count / (durationMs / 1_000), latency, loadShare, answeredInAll: answered };
}
