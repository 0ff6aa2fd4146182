import { setTimeout as pause } from "node:timers/promises";
import type { PacedLoopResult } from "../load-paced.ts";
import type { Rig, Scenario } from "../rig.ts";
import { HISTORY_TARGET } from "../rounds.ts";
import { atLeast, perSecond, type Row } from "../row.ts";
import type { BenchServer } from "../server.ts";
import { DELIVERED_ACTION, publishOf } from "../workload.ts";

const TARGET_PER_S = 16_000;
/** Tried upwards from this one while they hold, or downwards until one does. */
const FIRST_PER_S = 6_000;
const STEPS_PER_S = [
  2_000, 3_000, 4_000, 5_000, 6_000, 8_000, 10_000, 12_000, 14_000, 16_000, 18_000, 20_000,
];
const DURATION_MS = 6_000;
const CONNECTIONS = 64;
/** For a server that was started a moment ago; what it does then is not judged. */
const WARM_UP = { ratePerS: 3_000, durationMs: 2_000 };
const SAMPLE_MS = 500;
const PATH = "/fast/orders";
/** How long after the last publish was due the last event may arrive. */
const LAST_WITHIN_MS = 1_000;
/** Of what is published in the second half, how much the backlog may grow in it. */
const GROWTH = 0.02;
const DRAIN_MS = 60_000;

interface Step {
  readonly ratePerS: number;
  readonly published: number;
  readonly holds: boolean;
  /** Published and not yet received, each half second. */
  readonly backlogs: readonly number[];
  readonly lastAfterMs: number;
  readonly p99Ms: number;
  readonly loadShare: number;
}

export const sustained: Scenario = {
  name: "sustained",
  summary: "The highest steady rate of single publishes whose deliveries keep up.",
  async run(rig) {
    const targets = await rig.targets();
    const steps = new Map<string, Step[]>();
    const tryOn = async (name: string, server: BenchServer, ratePerS: number): Promise<boolean> => {
      rig.options.say(`sustained, ${name}: ${perSecond(ratePerS)}`);
      const trying = () => tryRate(rig, server, ratePerS);
      const step = await rig.observe("sustained", name, server, trying, ({ published }) => published);
      steps.set(name, [...(steps.get(name) ?? []), step]);
      return step.holds;
    };
    let best = 0;
    const rows: Row[] = [];
    for (const [name, server] of targets) {
      rig.options.say(`sustained, ${name}: warming up`);
      await publishPaced(rig, server, WARM_UP);
      if (name === "empty") {
        best = await highest((ratePerS) => tryOn(name, server, ratePerS));
        rows.push(absolute(best, steps.get(name) ?? []));
      } else {
        // The rate itself first, as more than that does not matter.
        let kept = 0;
        for (const share of [1, HISTORY_TARGET, 0.75, 0.5]) {
          if (kept === 0 && (await tryOn(name, server, best * share))) kept = share;
        }
        rows.push(beside(name, best, kept, steps.get(name) ?? []));
      }
      await rig.retire("sustained", name, server);
    }
    return rows;
  },
};

async function highest(holds: (ratePerS: number) => Promise<boolean>): Promise<number> {
  const from = STEPS_PER_S.indexOf(FIRST_PER_S);
  let best = 0;
  for (const ratePerS of STEPS_PER_S.slice(from)) {
    if (!(await holds(ratePerS))) break;
    best = ratePerS;
  }
  if (best > 0) return best;
  for (const ratePerS of STEPS_PER_S.slice(0, from).toReversed()) if (await holds(ratePerS)) return ratePerS;
  return 0;
}

async function tryRate(rig: Rig, server: BenchServer, ratePerS: number): Promise<Step> {
  const startedMs = performance.timeOrigin + performance.now();
  const backlogs: number[] = [];
  const sampling = (async () => {
    for (let at = 1; at * SAMPLE_MS < DURATION_MS; at += 1) {
      await pause(startedMs + at * SAMPLE_MS - (performance.timeOrigin + performance.now()));
      const answered = await rig.load.call("answered");
      const { deliveries } = await rig.receiver.call("read", { path: PATH });
      // What waits in the load for a free connection is behind as well.
      const due = Math.round((at * SAMPLE_MS * ratePerS) / 1_000);
      backlogs.push(Math.max(due, answered) - deliveries);
    }
  })();
  const { result, lastMs } = await publishPaced(rig, server, { ratePerS, durationMs: DURATION_MS });
  await sampling;
  const lastAfterMs = lastMs - (startedMs + DURATION_MS);
  const late = backlogs.slice(backlogs.length / 2);
  const growth = (late.at(-1) ?? 0) - (late[0] ?? 0);
  const grows = growth > (GROWTH * ratePerS * DURATION_MS) / 2_000;
  return {
    ratePerS,
    published: result.answered,
    holds: result.unsent === 0 && lastAfterMs <= LAST_WITHIN_MS && !grows,
    backlogs,
    lastAfterMs,
    p99Ms: result.latencies[0]?.p99Ms ?? 0,
    loadShare: result.loadShare,
  };
}

/** Publishes at a steady rate and waits until all of it was received. */
async function publishPaced(
  rig: Rig,
  { port, token }: BenchServer,
  pace: { ratePerS: number; durationMs: number },
): Promise<{ result: PacedLoopResult; lastMs: number }> {
  await rig.receiver.call("reset", { record: false });
  const result = await rig.load.call("paced", {
    ...pace,
    port,
    token,
    connections: CONNECTIONS,
    requests: [publishOf(DELIVERED_ACTION)],
    warmUpMs: 0,
  });
  const { answered } = result;
  const awaited = { path: PATH, deliveries: answered, timeoutMs: DRAIN_MS };
  const drained = await rig.receiver.call("await", awaited);
  const { lastMs, deliveries } = await rig.receiver.call("read", { path: PATH });
  if (!drained) throw new Error(`Of ${answered} published events ${deliveries} arrived.`);
  return { result, lastMs };
}

function absolute(best: number, steps: readonly Step[]): Row {
  const at = steps.find(({ ratePerS }) => ratePerS === best);
  const note = at === undefined ? "" : `, ${Math.max(...at.backlogs)} behind at most`;
  return {
    scenario: "sustained",
    measured: `${perSecond(best)} events${note}`,
    ...atLeast(best, TARGET_PER_S, perSecond),
    detail: steps,
  };
}

function beside(name: string, best: number, kept: number, steps: readonly Step[]): Row {
  return {
    scenario: `sustained, ${name}`,
    ceiling: `empty ${perSecond(best)}`,
    measured: `${perSecond(best * kept)} events`,
    ...atLeast(kept, HISTORY_TARGET),
    detail: steps,
  };
}
