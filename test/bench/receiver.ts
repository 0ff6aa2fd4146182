import { createServer, type AddressInfo, type Socket } from "node:net";
import { answerCalls } from "./calls.ts";
import { HttpReader } from "./http-reader.ts";

// The webhook handler of the benchmark: raw sockets, and just enough HTTP. Paths below /hang/ are never answered, those
// below /slow/500/ after 500 ms.

const ANSWER = Buffer.from("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
/** Of an event to a subscription; the same in each attempt. */
const DELIVERY = /\r\nwebhook-id: *evt_(\d+)_(\d+)/i;
const MOST_SUBSCRIPTIONS = 1_000_000;

class Path {
  requests = 0;
  firstMs = 0;
  lastMs = 0;
  readonly deliveries = new Set<number>();
  /** By event, when it was there first; only while recording. */
  readonly arrivals: [event: number, atMs: number][] = [];
}

interface Wait {
  readonly path: string;
  readonly deliveries: number;
  readonly resolve: () => void;
}

export interface Received {
  readonly requests: number;
  /** Different ones; the other requests repeat one. */
  readonly deliveries: number;
  /** Milliseconds since the epoch with fractions, comparable between processes of this machine. */
  readonly firstMs: number;
  readonly lastMs: number;
}

const paths = new Map<string, Path>();
let waits: Wait[] = [];
let recording = false;

const server = createServer({ noDelay: true }, (socket) => {
  const reader = new HttpReader({
    keepsBody: () => false,
    onMessage: (head) => receive(head, socket),
  });
  socket.on("data", (chunk: Buffer) => reader.push(chunk));
  // Whoever sends may leave at any time.
  socket.on("error", () => socket.destroy());
});

function receive(head: string, socket: Socket): void {
  const name = head.slice(head.indexOf(" ") + 1, head.indexOf(" HTTP/"));
  let path = paths.get(name);
  if (path === undefined) {
    path = new Path();
    paths.set(name, path);
  }
  const nowMs = performance.timeOrigin + performance.now();
  path.requests += 1;
  path.firstMs ||= nowMs;
  path.lastMs = nowMs;
  const delivery = DELIVERY.exec(head);
  const event = Number(delivery?.[1] ?? 0);
  const before = path.deliveries.size;
  path.deliveries.add(event * MOST_SUBSCRIPTIONS + Number(delivery?.[2] ?? 0));
  const isNew = path.deliveries.size > before;
  if (isNew && recording) path.arrivals.push([event, nowMs]);
  const [, kind, tookMs] = name.split("/");
  if (kind === "slow") setTimeout(() => socket.writable && socket.write(ANSWER), Number(tookMs));
  else if (kind !== "hang") socket.write(ANSWER);
  if (isNew && waits.length > 0) settleWaits();
}

function isOver({ path, deliveries }: Wait): boolean {
  return (paths.get(path)?.deliveries.size ?? 0) >= deliveries;
}

function settleWaits(): void {
  for (const wait of waits) if (isOver(wait)) wait.resolve();
  waits = waits.filter((wait) => !isOver(wait));
}

const calls = {
  listen: (): Promise<number> =>
    new Promise((resolve) => {
      server.listen(0, "127.0.0.1", () => resolve((server.address() as AddressInfo).port));
    }),
  /** Forgets everything; with `record`, keeps arrival times from now on. */
  reset({ record }: { record: boolean }): void {
    paths.clear();
    recording = record;
  },
  read({ path }: { path: string }): Received {
    const { requests, deliveries, firstMs, lastMs } = paths.get(path) ?? new Path();
    return { requests, deliveries: deliveries.size, firstMs, lastMs };
  },
  arrivals: ({ path }: { path: string }): [event: number, atMs: number][] => paths.get(path)?.arrivals ?? [],
  /** Answers whether that many different deliveries have come in time. */
  async await(wanted: { path: string; deliveries: number; timeoutMs: number }): Promise<boolean> {
    const { path, deliveries, timeoutMs } = wanted;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    waits.push({ path, deliveries, resolve: () => resolve(true) });
    settleWaits();
    const timer = setTimeout(() => resolve(false), timeoutMs);
    const inTime = await promise;
    clearTimeout(timer);
    return inTime;
  },
};
export type ReceiverCalls = typeof calls;

answerCalls(calls);
