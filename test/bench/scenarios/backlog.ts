import { setTimeout as pause } from "node:timers/promises";
import { startChild } from "../child.ts";
import type { FillCalls } from "../fill.ts";
import type { Rig } from "../rig.ts";
import { rateRows } from "../rounds.ts";
import type { Scenario } from "../scenario.ts";
import { type BenchServer, type ServerPlace, startServer } from "../server.ts";
import type { UndiciLoopCalls } from "../undici-loop.ts";
import { WAITING_ACTION } from "../workload.ts";

const EVENTS = 50_000;
const TARGET = 0.65;
const PATH = "/fast/backlog";
const LONGEST_MS = 60_000;

export const backlog: Scenario = {
  name: "backlog",
  summary: "50,000 waiting deliveries to one fast handler, beside a bare undici loop.",
  async run(rig) {
    const handler = await rig.handler("fast", "backlog");
    const loopRates: number[] = [];
    const rates = new Map<string, number[]>();
    for (let round = 0; round < rig.options.rounds; round += 1) {
      rig.options.say(`backlog, round ${round + 1}: undici`);
      loopRates.push(await loop(handler));
      const places = new Map([["empty", rig.newPlace()]]);
      if (rig.options.history) places.set("2 million", (await rig.seeded()).place);
      for (const [name, place] of places) {
        rig.options.say(`backlog, round ${round + 1}: ${name}, filling`);
        await fill(place, handler);
        await rig.receiver.call("reset", { record: false });
        rig.options.say(`backlog, round ${round + 1}: ${name}`);
        const server = await startServer(place);
        const rate = await rig.observe("backlog", name, server, () => deliver(rig, server));
        await rig.retire("backlog", name, server);
        rates.set(name, [...(rates.get(name) ?? []), rate]);
      }
    }
    return rateRows({
      scenario: "backlog",
      ceiling: { name: "undici", rates: loopRates },
      servers: rates,
      target: TARGET,
      unit: "deliveries",
      detail: undefined,
    });
  },
};

/** In a new process, as what it is compared with is one. */
async function loop(handler: string): Promise<number> {
  const undici = startChild<UndiciLoopCalls>("undici-loop.ts");
  const rate = await undici.call("post", { url: handler, requests: EVENTS });
  await undici.end("SIGKILL");
  return rate;
}

async function fill({ folder }: ServerPlace, handler: string): Promise<void> {
  const filler = startChild<FillCalls>("fill.ts");
  const subscriptions = [{ application: "billing", subscription: "backlog", handler }];
  await filler.call("fill", { folder, action: WAITING_ACTION, subscriptions, events: EVENTS });
  await filler.end("SIGTERM");
}

/** From the first arrival until all are stored as delivered; answers deliveries a second. */
async function deliver(rig: Rig, server: BenchServer): Promise<number> {
  const inTime = await rig.receiver.call("await", { path: PATH, deliveries: EVENTS, timeoutMs: LONGEST_MS });
  const { firstMs, deliveries, requests } = await rig.receiver.call("read", { path: PATH });
  if (!inTime) throw new Error(`${deliveries} of ${EVENTS} deliveries arrived in ${LONGEST_MS / 1_000} s.`);
  while ((await unfinished(server, "pending")) || (await unfinished(server, "delivering"))) await pause(10);
  const storedMs = performance.timeOrigin + performance.now();
  if (requests !== EVENTS) throw new Error(`${requests} requests came for ${EVENTS} deliveries.`);
  return EVENTS / ((storedMs - firstMs) / 1_000);
}

async function unfinished(server: BenchServer, status: string): Promise<boolean> {
  const { data } = await server.api<{ data: unknown[] }>("GET", `/v1/deliveries?status=${status}&limit=1`);
  return data.length > 0;
}
