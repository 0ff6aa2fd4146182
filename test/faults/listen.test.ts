import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { setTimeout as pause } from "node:timers/promises";
import { afterAll, beforeAll, expect } from "vitest";
import { connect } from "../../src/client/client.ts";
import type { Evreg } from "../../src/evreg.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { startCommand, startProgram, temporaryFolder } from "../support/program.ts";
import { type Receiver, startReceiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { inLongForm, lengthOf, report } from "./length.ts";
import { settled } from "./fault.ts";

// The promise under test: a listener loses nothing, whichever side dies or sleeps, and repeats only what was under way.

const { kills, sleeps, events, "events in order": inOrder } = lengthOf("faults/listen");
/** As the listener has them. */
const CONCURRENCY = 4;
const LEASE_MS = 15_000;
/** Of the program that is forwarded to, so that something is under way when a side dies. */
const ANSWER_MS = 4;
const BATCH = 1_000;

const folder = temporaryFolder();
let receiver: Receiver;
/** Requests by path. */
const counted = new Map<string, number>();

beforeAll(async () => {
  receiver = await startReceiver();
  receiver.answer = ({ path }) => {
    counted.set(path, (counted.get(path) ?? 0) + 1);
    return { after: pause(ANSWER_MS) };
  };
});
afterAll(async () => {
  await receiver?.close();
  folder.remove();
});

/** The numbers that came to this path, in their order. */
function seenAt(path: string): number[] {
  return receiver.requests
    .filter((request) => request.path === path)
    .map(({ body }) => (JSON.parse(body.toString()) as { payload: { n: number } }).payload.n);
}

const actions = ["plain", "ordered"] as const;
const wanted = { plain: events, ordered: inOrder };

function counts(): number[] {
  return actions.map((action) => counted.get(`/${action}`) ?? 0);
}

function isAtEnd(action: (typeof actions)[number]): boolean {
  return new Set(seenAt(`/${action}`)).size === wanted[action];
}

/** Every listener gets something, as long as there is something. */
async function progress(): Promise<void> {
  const before = counts();
  const hasCome = (count: number, at: number): boolean => count > before[at]! + 2 || isAtEnd(actions[at]!);
  await until("events come", () => counts().every(hasCome));
}

async function prepare(evreg: Evreg, action: string, count: number): Promise<void> {
  await evreg.actions.create({ action, application: "load", schemata: { type: "object" } });
  const names = { application: "listen", subscription: action, action };
  await evreg.subscriptions.create({ ...names, mode: "pull", ordered: action === "ordered" });
  for (let from = 0; from < count; from += BATCH) {
    const numbers = Array.from({ length: Math.min(BATCH, count - from) }, (_, index) => from + index);
    await evreg.events.publishBatch(numbers.map((n) => ({ action, payload: RawJson.fromValue({ n }) })));
  }
}

/** Starts `evreg listen` for one action. */
function startListener(url: string, action: string): ChildProcess {
  const names = ["--action", action, "--application", "listen", "--subscription", action];
  const to = ["--forward-to", `http://127.0.0.1:${receiver.port}/${action}`];
  return startCommand(["listen", ...names, ...to], { env: { EVREG_URL: url } }).child;
}

async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) throw new Error("a listener ended by itself");
  const ended = once(child, "close");
  child.kill("SIGKILL");
  await ended;
}

inLongForm(
  `a listener and its server are killed ${kills} times: nothing is lost, and order is kept`,
  { timeout: 60_000 + (kills + sleeps) * 30_000 },
  async () => {
    let server = await startProgram(folder.path, ["--dev"]);
    const { url } = server;
    const evreg = connect({ url });
    await prepare(evreg, "plain", events);
    await prepare(evreg, "ordered", inOrder);
    const listeners = new Map(actions.map((action) => [action, startListener(url, action)] as const));
    try {
      for (let count = 0; count < kills; count += 1) {
        await progress();
        await pause(Math.random() * 1_000);
        if (count % 2 === 0) {
          await server.end("SIGKILL");
          server = await startProgram(folder.path, ["--dev", "--port", new URL(url).port]);
        } else {
          const action = actions[Math.floor(count / 2) % 2]!;
          await kill(listeners.get(action)!);
          listeners.set(action, startListener(url, action));
        }
      }
      for (let count = 0; count < sleeps; count += 1) {
        await progress();
        for (const listener of listeners.values()) listener.kill("SIGSTOP");
        await pause(LEASE_MS + 2_000);
        for (const listener of listeners.values()) listener.kill("SIGCONT");
      }
      await settled(url, 60_000 + events * 30);
    } finally {
      for (const listener of listeners.values()) await kill(listener);
      await evreg.close();
      await server.end("SIGTERM");
    }
    const [plain, ordered] = [seenAt("/plain"), seenAt("/ordered")];
    const lost = events + inOrder - new Set(plain).size - new Set(ordered).size;
    const repeated = plain.length + ordered.length - events - inOrder + lost;
    const inversions = ordered.filter((n, index) => index > 0 && n < ordered[index - 1]!).length;
    expect({ lost, inversions }).toEqual({ lost: 0, inversions: 0 });
    expect(repeated).toBeLessThanOrEqual((kills + sleeps) * (CONCURRENCY + 1));
    report("listen", { kills, sleeps, events: events + inOrder, lost, inversions, repeated });
  },
);
