import { readFileSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startProgram, temporaryFolder } from "../support/program.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { isLong, report } from "./length.ts";
import { LENGTHS } from "./lengths.ts";
import { create } from "./load.ts";

// The promise under test: handlers whose answers never come to an end, in parts that no parser bounds, cost neither memory
// nor the deliveries of others.

/** There is no short form. */
const [, HOSTILE] = LENGTHS["faults/heads"].handlers;
const EVENTS = 200;
const MOST_MB = 500;
const MOST_TIMES = 5;
const BEGINNINGS = [
  "HTTP/1.1 200 ",
  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;a=",
  "HTTP/1.1 103 ",
];

/** In a thread of its own, as writing that much would keep the handler waiting that is measured. */
const WRITING = `
  import { createServer } from "node:net";
  import { parentPort, workerData } from "node:worker_threads";
  const chunk = Buffer.alloc(65_536, "a");
  for (const beginning of workerData) {
    const server = createServer((socket) => {
      const write = () => {
        while (socket.writable && socket.write(chunk));
      };
      socket.on("error", () => {}).on("drain", write).once("data", () => {
        parentPort.postMessage("asked");
        socket.write(beginning);
        write();
      });
    });
    server.listen(0, "127.0.0.1", () => parentPort.postMessage(server.address().port));
  }
`;

const folder = temporaryFolder();
const ports: number[] = [];
let asked = 0;
let hostile: Worker;
let healthy: Receiver;

beforeAll(async () => {
  healthy = await startReceiver();
  const workerData = Array.from({ length: HOSTILE }, (_, number) => BEGINNINGS[number % BEGINNINGS.length]);
  hostile = new Worker(new URL(`data:text/javascript,${encodeURIComponent(WRITING)}`), { workerData });
  hostile.on("message", (message: number | "asked") => {
    if (message === "asked") asked += 1;
    else ports.push(message);
  });
  await until("the hostile handlers to listen", () => ports.length === HOSTILE);
});

afterAll(async () => {
  await hostile?.terminate();
  await healthy?.close();
  folder.remove();
});

test.skipIf(!isLong)(
  `${HOSTILE} handlers with endless heads beside a healthy one (long form only)`,
  { timeout: 120_000 },
  async () => {
    const server = await startProgram(folder.path, ["--dev"]);
    const { url } = server;
    await subscribe(url, "healthy.sent", [healthy.url]);
    await subscribe(
      url,
      "hostile.sent",
      ports.map((port) => `http://127.0.0.1:${port}/`),
    );
    const alone = await p99Ms(url, () => undefined);
    const beside = await p99Ms(url, (n) => (n % 10 === 0 ? publish(url, "hostile.sent", n) : undefined));
    await until("each to have been sent to several times", () => asked > HOSTILE * 5);
    const status = readFileSync(`/proc/${server.child.pid}/status`, "latin1");
    const peakMb = Number(/^VmHWM:\s+(\d+) kB$/m.exec(status)?.[1]) / 1_024;
    const { data } = (await (await fetch(`${url}/v1/deliveries?action=hostile.sent&limit=1`)).json()) as {
      data: { last_error: string }[];
    };
    expect(data[0]?.last_error).toBe("protocol_error");
    expect(peakMb).toBeLessThan(MOST_MB);
    // Below a few milliseconds a ratio says nothing.
    expect(beside).toBeLessThan(Math.max(alone, 10) * MOST_TIMES);
    expect((await server.end("SIGTERM")).code).toBe(0);
    report("endless heads", { alone, beside, peakMb: Math.round(peakMb) });
  },
);

async function subscribe(url: string, action: string, handlers: readonly string[]): Promise<void> {
  await create(`${url}/v1/actions`, { action, application: "load", schemata: {} });
  for (const [number, handler] of handlers.entries()) {
    const subscription = { application: "load", subscription: `to-${number}`, action };
    await create(`${url}/v1/subscriptions`, { ...subscription, handler, max_retries: 20 });
  }
}

async function publish(url: string, action: string, n: number): Promise<void> {
  await create(`${url}/v1/events`, { action, payload: { n } });
}

/** From publishing an event to the healthy handler, one after the other; `beside` is done before each. */
async function p99Ms(url: string, beside: (n: number) => unknown): Promise<number> {
  const took: number[] = [];
  for (let n = 0; n < EVENTS; n += 1) {
    await beside(n);
    const sinceMs = performance.now();
    const before = healthy.requests.length;
    await publish(url, "healthy.sent", n);
    await healthy.received(before + 1);
    took.push(performance.now() - sinceMs);
  }
  return Math.round(took.toSorted((one, other) => one - other)[Math.floor(took.length * 0.99)]!);
}
