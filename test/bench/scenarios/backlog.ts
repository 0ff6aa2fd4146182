import { deliverAll, fill } from "../backlogs.ts";
import { startChild } from "../child.ts";
import { rateRows } from "../rounds.ts";
import type { Scenario } from "../scenario.ts";
import { startServer } from "../server.ts";
import type { UndiciLoopCalls } from "../undici-loop.ts";

const EVENTS = 50_000;
const TARGET = 0.85;
const PATH = "/fast/backlog";

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
      if (rig.options.history) places.set(rig.historyName, (await rig.seeded()).place);
      for (const [name, place] of places) {
        rig.options.say(`backlog, round ${round + 1}: ${name}, filling`);
        await fill(place, [handler], EVENTS);
        await rig.receiver.call("reset", { record: false });
        rig.options.say(`backlog, round ${round + 1}: ${name}`);
        const server = await startServer(place);
        const work = () => deliverAll(rig, server, { path: PATH, deliveries: EVENTS });
        const rate = await rig.observe("backlog", name, server, work, () => EVENTS);
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
