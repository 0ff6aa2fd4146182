import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { Worker } from "node:worker_threads";
import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { memoryOf } from "../bench/memory.ts";
import { readTokenFile } from "../../src/runtime/find-server.ts";
import { type RunningProgram, startProgram, temporaryFolder } from "../support/program.ts";
import type { Hoard, Hoarding } from "./hoarders.ts";
import { isLong, report } from "./length.ts";
import { LENGTHS } from "./lengths.ts";

// The promise under test: callers that withhold the end of what they send, do not read what they asked for, or are
// connected and silent, take a bounded part of the server, and the others do not feel them. `test/http` tries the same with
// few callers, and has no figures, so there is no short form.

const MIB = 1024 * 1024;
/** Of bodies, what one token may have at once; each of these has 16 MiB. */
const BODIES_AT_ONCE = 2;
/** Where 127.0.0.2 is an address of its own. */
const MOST_OF_ADDRESS = process.platform === "linux" ? 3_072 : 4_096;
const MOST_RESIDENT_MIB = 500;
const SLOWER = 5;
/** Below this a delay is nobody's worry, and the machine's own noise. */
const QUICK_MS = 25;
const SAME_LOOKS = 5;
const CLOSING_MS = 60_000;
const LOOK_MS = 5_000;
const {
  "silent connections": [, SILENT],
  readers: [, READERS],
  bodies: [, BODIES],
} = LENGTHS["faults/hoarding"];

const folder = temporaryFolder();
const agent = new Agent({ connections: 1 });
const tokens = { hoarder: "", other: "" };
let server: RunningProgram;
let quietMs: number;

describe.skipIf(!isLong)("callers that hoard (long form only)", () => {
  beforeAll(async () => {
    server = await startProgram(folder.path);
    const admin = readTokenFile(folder.path) ?? "";
    for (const name of ["hoarder", "other"] as const) {
      const { data } = await ask("/v1/tokens", admin, { name, scopes: ["publish", "read"] });
      tokens[name] = data.token;
    }
    const action = { action: "a.b", application: "app", schemata: { type: "object" } };
    await ask("/v1/actions", admin, action);
    const payload = { text: "x".repeat(1_000_000) };
    await ask("/v1/events", tokens.hoarder, { action: "a.b", payload });
    await look(LOOK_MS);
    quietMs = await look(LOOK_MS);
  });

  afterAll(async () => {
    await agent.close();
    await server?.end("SIGTERM");
    folder.remove();
  });

  test(`${SILENT} silent connections leave room to others`, { timeout: 300_000 }, async () => {
    const connections = SILENT;
    const refused = connections - MOST_OF_ADDRESS;
    const { closed } = await besides("silent", { connections, head: "", bodyBytes: 0 }, refused);
    expect(closed).toBeGreaterThanOrEqual(refused);
  });

  test(
    `${READERS} readers that do not read pages of 1 MB leave room to others`,
    { timeout: 300_000 },
    async () => {
      const page = `GET /v1/events?order=asc&limit=1 HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${tokens.hoarder}\r\n\r\n`;
      await besides("pages", { connections: READERS, head: page, bodyBytes: 0 });
      // Sent one behind the other, until there is nothing between that takes them.
      await besides("pages in a row", { connections: 40, head: page.repeat(30), bodyBytes: 0 });
    },
  );

  test(
    `${BODIES} bodies of 16 MiB whose last byte is withheld leave room to others`,
    { timeout: 300_000 },
    async () => {
      const length = 16 * MIB;
      const head = `POST /v1/events/batch HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${tokens.hoarder}\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;
      const hoard = await besides("bodies", {
        connections: BODIES,
        head,
        bodyBytes: length - 1,
      });
      expect(hoard.taken).toBeLessThanOrEqual(BODIES_AT_ONCE);
    },
  );
});

/**
 * Has the others do what they do meanwhile, and holds them and the server to what is promised.
 * @param refused how many of the connections the server must close
 */
async function besides(name: string, hoarding: Omit<Hoarding, "port">, refused = 0): Promise<Hoard> {
  const port = Number(new URL(server.url).port);
  const worker = new Worker(new URL("./hoarders.ts", import.meta.url), { workerData: { ...hoarding, port } });
  let residentMib = 0;
  const sampling = setInterval(() => {
    residentMib = Math.max(residentMib, Math.round(memoryOf(server.child.pid!)?.nowMb ?? 0));
  }, 50);
  try {
    const p99Ms = await look(2 * LOOK_MS);
    for (let probe = 0; probe < 96; probe += 1) {
      const { statusCode, body } = await request(`${server.url}/health`);
      await body.dump();
      expect(statusCode).toBe(200);
    }
    const hoard = await atRest(worker, refused);
    report(name, { ...hoarding, head: undefined, ...hoard, residentMib, quietMs, p99Ms });
    expect(p99Ms).toBeLessThan(Math.max(QUICK_MS, SLOWER * quietMs));
    expect(residentMib).toBeLessThan(MOST_RESIDENT_MIB);
    return hoard;
  } finally {
    clearInterval(sampling);
    await worker.terminate();
  }
}

/**
 * How far the callers have come once nothing of it changes any more, and as many connections are closed as the server
 * refuses: it then has all it takes of them. With fewer closed after a minute, how far they are by then.
 */
async function atRest(worker: Worker, refused: number): Promise<Hoard> {
  const endMs = performance.now() + CLOSING_MS;
  let before: Hoard | undefined;
  for (let same = 0; ;) {
    worker.postMessage("how far", []);
    const [hoard] = (await once(worker, "message")) as [Hoard];
    const isOver = hoard.closed >= refused || performance.now() > endMs;
    same = isOver && isDeepStrictEqual(hoard, before) ? same + 1 : 0;
    if (same === SAME_LOOKS) return hoard;
    before = hoard;
    await pause(100);
  }
}

/** Publishes one event after the other for a while; answers how long 99 of 100 took at most. */
async function look(forMs: number): Promise<number> {
  const endMs = performance.now() + forMs;
  const tookMs: number[] = [];
  while (performance.now() < endMs) {
    const beganMs = performance.now();
    await ask("/v1/events", tokens.other, { action: "a.b", payload: {} });
    tookMs.push(performance.now() - beganMs);
    await pause(5);
  }
  const sorted = tookMs.toSorted((one, other) => one - other);
  return Math.round(sorted[Math.floor(sorted.length * 0.99)] ?? 0);
}

async function ask(path: string, token: string, body: object): Promise<{ data: { token: string } }> {
  const { statusCode, body: answer } = await request(server.url + path, {
    dispatcher: agent,
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  expect(statusCode, text).toBe(201);
  return JSON.parse(text) as { data: { token: string } };
}
