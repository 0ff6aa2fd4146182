import { answerCalls } from "./calls.ts";
import { CpuShare } from "./cpu-share.ts";
import { Latencies, type LatencySummary } from "./latencies.ts";
import { type LoadTarget, openConnections } from "./load-connection.ts";
import { pace, type PacedLoop, type PacedLoopResult } from "./load-paced.ts";
import type { RequestSpec } from "./workload.ts";

export interface ClosedLoop extends LoadTarget {
  readonly request: RequestSpec;
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
export async function runClosedLoop({ request, ...target }: ClosedLoop): Promise<ClosedLoopResult> {
  const connections = await openConnections(target, [request]);
  const latencies = new Latencies();
  const countFromMs = performance.now() + target.warmUpMs;
  const untilMs = countFromMs + target.durationMs;
  let cpu: CpuShare | undefined;
  let answered = 0;
  let loadShare = 0;

  const all = connections.all.map(
    (connection) =>
      new Promise<void>((resolve) => {
        const sendNext = (): void => {
          const sentMs = performance.now();
          connections.send(connection, 0, () => {
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
  await connections.during(Promise.all(all));
  const latency = latencies.summary();
  const ratePerS = latency.count / (target.durationMs / 1_000);
  return { ratePerS, latency, loadShare, answeredInAll: answered };
}

const ROWID = /"rowid":(\d+)/;

let answeredNow = 0;

/** An event by its rowid and when publishing it was due, in milliseconds since the epoch with fractions. */
export type PublishedEvent = readonly [rowid: number, dueMs: number];

const calls = {
  closed: runClosedLoop,
  paced(options: PacedLoop): Promise<PacedLoopResult> {
    answeredNow = 0;
    const onAnswer = (): void => {
      answeredNow += 1;
    };
    return pace(options, { keepsBodies: false, onAnswer });
  },
  /** Answers of the paced run under way. */
  answered: (): number => answeredNow,
  /** The same, and which events were published when; those of the warm-up left out. */
  async pacedEvents(options: PacedLoop): Promise<PacedLoopResult & { readonly events: PublishedEvent[] }> {
    const events: PublishedEvent[] = [];
    const result = await pace(options, {
      keepsBodies: true,
      onAnswer: ({ body }, { atMs, counts }) => {
        const rowid = Number(ROWID.exec(body?.toString("latin1") ?? "")?.[1]);
        if (Number.isNaN(rowid)) throw new Error(`No rowid in the answer ${body?.toString()}`);
        if (counts) events.push([rowid, performance.timeOrigin + atMs]);
      },
    });
    return { ...result, events };
  },
};
export type LoadCalls = typeof calls;

answerCalls(calls);
