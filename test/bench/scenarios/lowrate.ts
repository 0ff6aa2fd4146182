import { setTimeout as pause } from "node:timers/promises";
import { median } from "../latencies.ts";
import type { Rig } from "../rig.ts";
import { ms } from "../row.ts";
import type { Scenario } from "../scenario.ts";
import type { BenchServer } from "../server.ts";
import { publishPaced } from "./sustained.ts";

const LOW_PER_S = 50;
const MODERATE_PER_S = 300;
const DURATION_MS = 3_000;
const CONNECTIONS = 4;
/** Until the code that each event runs is compiled. */
const WARM_UP = { ratePerS: 1_000, durationMs: 3_000, connections: CONNECTIONS };
/** After the last event, until the server has seen that nothing comes and has given memory back. */
const SETTLE_MS = 22_000;
/** Several short ones: a late collection is then in one of them. */
const IDLE = { times: 5, durationMs: 1_500 };
const LOW_TARGET_MS = 110;
const IDLE_TARGET_MS = 5;

/** Processor time of the server, in milliseconds. */
interface Spent {
  readonly perSecondMs: number;
  readonly perEventMs: number;
}

export const lowrate: Scenario = {
  name: "lowrate",
  summary: "Processor time at 50 and at 300 events a second, published and delivered, and with none.",
  async run(rig) {
    const server = await rig.emptyServer();
    rig.options.say("lowrate: warming up");
    await publishPaced(rig, server, WARM_UP);
    const lows: Spent[] = [];
    const moderates: Spent[] = [];
    const idles: Spent[] = [];
    for (let round = 0; round < rig.options.rounds; round += 1) {
      rig.options.say(`lowrate, round ${round + 1}: ${LOW_PER_S} a second`);
      lows.push(await publishing(rig, server, LOW_PER_S));
      rig.options.say(`lowrate, round ${round + 1}: ${MODERATE_PER_S} a second`);
      moderates.push(await publishing(rig, server, MODERATE_PER_S));
    }
    rig.options.say("lowrate: idle");
    await pause(SETTLE_MS);
    for (let time = 0; time < IDLE.times; time += 1) {
      idles.push(await spent(server, 0, () => pause(IDLE.durationMs)));
    }
    await rig.retire("lowrate", "empty", server);
    const lowMs = median(lows.map(({ perSecondMs }) => perSecondMs));
    const idleMs = median(idles.map(({ perSecondMs }) => perSecondMs));
    const perEvent = (runs: readonly Spent[]): string => ms(median(runs.map(({ perEventMs }) => perEventMs)));
    return [
      {
        scenario: `lowrate, ${LOW_PER_S}/s`,
        ceiling: "-",
        measured: `${perEvent(lows)} an event, ${perEvent(moderates)} at ${MODERATE_PER_S}/s`,
        figure: `${ms(lowMs)} a second`,
        target: `≤ ${LOW_TARGET_MS} ms a second`,
        met: lowMs <= LOW_TARGET_MS,
        detail: { lows, moderates },
      },
      {
        scenario: "lowrate, idle",
        ceiling: "-",
        measured: `${ms(idleMs)} a second`,
        figure: `${ms(idleMs)} a second`,
        target: `≤ ${IDLE_TARGET_MS} ms a second`,
        met: idleMs <= IDLE_TARGET_MS,
        detail: idles,
      },
    ];
  },
};

function publishing(rig: Rig, server: BenchServer, ratePerS: number): Promise<Spent> {
  const pace = { ratePerS, durationMs: DURATION_MS, connections: CONNECTIONS };
  return spent(server, (ratePerS * DURATION_MS) / 1_000, () => publishPaced(rig, server, pace));
}

/** While `work` is under way. The probe is asked before and after, and does nothing in between. */
async function spent(server: BenchServer, events: number, work: () => Promise<unknown>): Promise<Spent> {
  const beforeMs = await server.child.call("processMs");
  const startedMs = performance.now();
  await work();
  const wallMs = performance.now() - startedMs;
  const tookMs = (await server.child.call("processMs")) - beforeMs;
  return { perSecondMs: (tookMs * 1_000) / wallMs, perEventMs: tookMs / events };
}
