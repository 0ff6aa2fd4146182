import { afterAll, beforeAll, expect, test } from "vitest";
import { startProgram, temporaryFolder } from "../support/program.ts";
import { startReceiver, type Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { lengthOf, report } from "./length.ts";
import { create } from "./load.ts";

// The promise under test: in a subscription that is ordered by key, a key that fails blocks itself alone. The others keep
// their order, and get their events hardly later than without any.

const { events, keys: KEYS } = lengthOf("faults/keyed");
const BATCH = 250;
const FAILING = 0;
const ENDING_MS = 600_000;
/** Of a rate that two cores take easily, with two deliveries of each. */
const BATCH_EVERY_MS = 500;
const SLACK_MS = 20;

const folder = temporaryFolder();
let receiver: Receiver;

interface Seen {
  readonly event: number;
  readonly key: number;
  readonly lateMs: number;
}
const seen: Readonly<Record<string, Seen[]>> = { keyed: [], plain: [] };

beforeAll(async () => {
  receiver = await startReceiver();
  receiver.answer = ({ path, body, headers }) => {
    const { payload } = JSON.parse(body.toString()) as { payload: { key: number; at: number } };
    const { key, at } = payload;
    const how = path.split("/").at(-1)!;
    if (how === "keyed" && key === FAILING) return { status: 500 };
    const event = Number((headers["x-evreg-delivery"] ?? "").split("_")[0]);
    seen[how]!.push({ event, key, lateMs: performance.now() - at });
    return {};
  };
});

afterAll(async () => {
  await receiver?.close();
  folder.remove();
});

async function publishAll(url: string): Promise<void> {
  const beganMs = performance.now();
  for (let sent = 0; sent < events; sent += BATCH) {
    const atMs = beganMs + (sent / BATCH) * BATCH_EVERY_MS;
    await until("it is time for more", () => Promise.resolve(performance.now() >= atMs));
    const batch = Array.from({ length: Math.min(BATCH, events - sent) }, () => {
      const key = Math.floor(Math.random() * KEYS);
      return { action: "load.sent", payload: { key, at: performance.now() } };
    });
    await create(`${url}/v1/events/batch`, { events: batch });
  }
}

function inversions(requests: readonly Seen[]): number {
  const latest = new Map<number, number>();
  return requests.filter(({ event, key }) => {
    const before = latest.get(key) ?? 0;
    latest.set(key, Math.max(before, event));
    return event < before;
  }).length;
}

function p99(requests: readonly Seen[]): number {
  const sorted = requests.map(({ lateMs }) => lateMs).toSorted((a, b) => a - b);
  return sorted[Math.floor(sorted.length * 0.99)] ?? 0;
}

test.skipIf(events === 0)(
  `of ${events} events over ${KEYS} keys, those of one that fails hold up no others`,
  { timeout: 2 * ENDING_MS },
  async () => {
    const server = await startProgram(folder.path, ["--dev"]);
    const { url } = server;
    await create(`${url}/v1/actions`, {
      action: "load.sent",
      application: "load",
      schemata: { type: "object" },
    });
    for (const [subscription, settings] of [
      ["keyed", { ordered: { key: "/key" } }],
      ["plain", {}],
    ] as const) {
      const named = { application: "load", subscription, action: "load.sent" };
      await create(`${url}/v1/subscriptions`, {
        ...named,
        ...settings,
        handler: `${receiver.url}/${subscription}`,
      });
    }
    await publishAll(url);
    const others = () => seen["plain"]!.filter(({ key }) => key !== FAILING);
    await until(
      "all others came",
      () => Promise.resolve(seen["plain"]!.length >= events && seen["keyed"]!.length >= others().length),
      ENDING_MS,
    );
    expect((await server.end("SIGTERM")).code).toBe(0);
    const figures = {
      inversions: inversions(seen["keyed"]!),
      keyedP99Ms: Math.round(p99(seen["keyed"]!)),
      plainP99Ms: Math.round(p99(others())),
    };
    expect(new Set(seen["keyed"]!.map(({ event }) => event)).size).toBe(others().length);
    expect(figures.inversions).toBe(0);
    expect(figures.keyedP99Ms).toBeLessThanOrEqual(2 * figures.plainP99Ms + SLACK_MS);
    report("keyed", { events, keys: KEYS, ...figures });
  },
);
