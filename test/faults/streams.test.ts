import { fork } from "node:child_process";
import { readFileSync } from "node:fs";
import { type AddressInfo, connect as connectSocket, createServer, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, expect, test } from "vitest";
import { connect } from "../../src/client/client.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { cleanEnv, startProgram, temporaryFolder } from "../support/program.ts";
import { until } from "../support/until.ts";
import { isLong, lengthOf, report, rounds } from "./length.ts";
import { create } from "./load.ts";
import type { ReadersReport } from "./stream-readers.ts";

// The promise under test: a stream shows every event once and in order, whoever reads beside it and however often the server
// dies. What it costs the server is in the line of figures.

const { readers: READERS, events: EVENTS, kills: KILLS } = lengthOf("faults/streams");
const ACTION = "load.sent";
const BATCH = 100;
const PER_SECOND = Number(process.env["STREAM_RATE"] ?? 5_000);

const READERS_PROGRAM = fileURLToPath(new URL("stream-readers.ts", import.meta.url));

const folders: { readonly remove: () => void }[] = [];
afterAll(() => {
  for (const folder of folders) folder.remove();
});

async function serve(folder: string) {
  const server = await startProgram(folder, ["--dev"]);
  return { ...server, evreg: connect({ url: server.url }) };
}

function newFolder(): string {
  const folder = temporaryFolder();
  folders.push(folder);
  return `${folder.path}/data`;
}

/** One address for a server that has another one after each start. */
async function startFront(url: () => string): Promise<{ url: string; close: () => Promise<void> }> {
  const sockets = new Set<Socket>();
  const listener = createServer((caller) => {
    const server = connectSocket(Number(new URL(url()).port), "127.0.0.1");
    for (const [socket, other] of [
      [caller, server],
      [server, caller],
    ] as const) {
      sockets.add(socket);
      socket.on("error", () => undefined).on("close", () => other.destroy());
      socket.pipe(other);
    }
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(listener.address() as AddressInfo).port}`,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => listener.close(resolve));
    },
  };
}

/** At a steady rate, if the server keeps up with it; answers the last rowid and how many came to a second. */
async function publishAll(url: string, count: number): Promise<{ last: number; perSecond: number }> {
  const evreg = connect({ url });
  const items = Array.from({ length: BATCH }, (_, n) => ({
    action: ACTION,
    payload: RawJson.fromValue({ n }),
  }));
  const began = performance.now();
  const underWay = new Set<Promise<unknown>>();
  for (let sent = 0; sent < count; sent += BATCH) {
    const dueMs = began + (sent / PER_SECOND) * 1_000;
    if (dueMs > performance.now()) await pause(dueMs - performance.now());
    const one = evreg.events.publishBatch(items, { minimal: true }).finally(() => underWay.delete(one));
    underWay.add(one);
    if (underWay.size >= 8) await Promise.race(underWay);
  }
  await Promise.all(underWay);
  const perSecond = count / ((performance.now() - began) / 1_000);
  const { data } = await evreg.events.list({ limit: 1 });
  await evreg.close();
  return { last: data[0]!.rowid, perSecond };
}

function residentMiB(pid: number): number {
  const [, kib] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
  return Number(kib) / 1024;
}

/** Of all threads, at 100 ticks a second. */
function cpuSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

test.skipIf(process.platform !== "linux")(
  `${READERS} readers get all events in order, while one takes nothing and is cut off`,
  { timeout: rounds(60_000, 600_000) },
  async () => {
    const server = await serve(newFolder());
    const { url } = server;
    const pid = server.child.pid!;
    await create(`${url}/v1/actions`, { action: ACTION, application: "load", schemata: { type: "object" } });
    // Twice, so that the heap has the size that this load gives it.
    await publishAll(url, EVENTS);
    const idle = cpuSeconds(pid);
    const before = await publishAll(url, EVENTS);
    const [alone, aloneSeconds] = [residentMiB(pid), cpuSeconds(pid) - idle];

    let told: ReadersReport = { isReady: false, last: 0, faults: 0 };
    const readers = fork(READERS_PROGRAM, [url, String(READERS)], { env: cleanEnv() });
    readers.on("message", (message) => (told = message as ReadersReport));
    await until("all to be ready", () => told.isReady);
    let most = 0;
    const watching = setInterval(() => (most = Math.max(most, residentMiB(pid))), 100);
    const began = cpuSeconds(pid);
    const during = await publishAll(url, EVENTS);
    const published = performance.now();
    await until("all to have all", () => told.last === during.last);
    const behindMs = performance.now() - published;
    clearInterval(watching);
    expect(told.faults).toBe(0);
    const metrics = () => server.evreg.metrics();
    report("streams", {
      readers: READERS,
      "per second without": Math.round(before.perSecond),
      "per second with": Math.round(during.perSecond),
      "MiB without": Math.round(alone),
      "MiB at most": Math.round(most),
      "ms behind at the end": Math.round(behindMs),
      "CPU s without": aloneSeconds,
      "CPU s with": cpuSeconds(pid) - began,
    });
    if (isLong) {
      await until(
        "the cut",
        async () => new RegExp(`^evreg_streams_open ${READERS - 1}$`, "m").test(await metrics()),
        90_000,
      );
    }
    readers.disconnect();
    await server.evreg.close();
    await server.end("SIGTERM");
  },
);

test(
  "a client that goes on through kill -9 of its server has each event once and in order",
  { timeout: rounds(60_000, 300_000) },
  async () => {
    const folder = newFolder();
    const first = await serve(folder);
    let server = first;
    const front = await startFront(() => server.url);
    await create(`${first.url}/v1/actions`, {
      action: ACTION,
      application: "load",
      schemata: { type: "object" },
    });
    const reader = connect({ url: front.url });
    let disconnects = 0;
    const stream = await reader.stream({ payloads: true }, { disconnected: () => (disconnects += 1) });
    const seen: number[] = [];
    const reading = (async () => {
      for await (const message of stream) if (message.type === "event") seen.push(message.data.rowid);
    })();

    const publisher = connect({ url: front.url, timeoutMs: 5_000 });
    const done = new AbortController();
    let refused = 0;
    const publishing = (async () => {
      const underWay = new Set<Promise<unknown>>();
      while (!done.signal.aborted) {
        const one = publisher.events
          .publish({ action: ACTION, payload: RawJson.fromText('{"some":"payload"}') })
          .catch(() => (refused += 1))
          .finally(() => underWay.delete(one));
        underWay.add(one);
        // 500 a second, as far as the server keeps up.
        await pause(2);
        if (underWay.size >= 64) await Promise.race(underWay);
      }
      await Promise.all(underWay);
    })();
    for (let kill = 0; kill < KILLS; kill += 1) {
      await pause(rounds(300, 500 + Math.random() * 1_500));
      await server.end("SIGKILL");
      await server.evreg.close();
      server = await serve(folder);
    }
    await pause(300);
    done.abort();
    await publishing;
    const stored: number[] = [];
    for (let after = 0; ;) {
      const { data } = await server.evreg.events.list({ order: "asc", after, limit: 500 });
      stored.push(...data.map(({ rowid }) => rowid));
      if (data.length < 500) break;
      after = data.at(-1)!.rowid;
    }
    await until("the last event", () => seen.at(-1) === stored.at(-1));
    await stream.close();
    await reading;
    expect(seen).toEqual(stored);
    expect(disconnects).toBeGreaterThanOrEqual(KILLS);
    report("streams through kills", { kills: KILLS, events: stored.length, refused, disconnects });
    for (const evreg of [reader, publisher, server.evreg]) await evreg.close();
    await server.end("SIGTERM");
    await front.close();
  },
);
