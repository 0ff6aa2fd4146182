import { IDLE_MB, type Rest } from "../rests.ts";
import type { Observation } from "../rig.ts";
import { mb, ms, type Row } from "../row.ts";
import type { Scenario } from "../scenario.ts";

const PEAK_MB = 250;
const LOOP_MS = 20;

export const memory: Scenario = {
  name: "memory",
  summary:
    "What the other scenarios did to their servers: memory under load and at rest, and the event loop.",
  async run(rig) {
    rig.options.say("memory: waiting for servers at rest");
    await rig.rests.over();
    return [...underLoad(rig.observations), ...atRest(rig.rests.seen)];
  },
};

function underLoad(observations: readonly Observation[]): readonly Row[] {
  const peak = most(observations, ({ peakMb }) => peakMb);
  const loop = most(observations, ({ loopDelayP99Ms }) => loopDelayP99Ms);
  if (peak === undefined || loop === undefined) return [];
  return [
    {
      scenario: "memory, most",
      ceiling: "-",
      measured: `in ${peak.scenario} (${peak.on})`,
      figure: mb(peak.peakMb),
      target: `≤ ${PEAK_MB} MB`,
      met: peak.peakMb <= PEAK_MB,
      detail: undefined,
    },
    {
      scenario: "event loop delay, p99",
      ceiling: "-",
      measured: `in ${loop.scenario} (${loop.on})`,
      figure: ms(loop.loopDelayP99Ms),
      target: `≤ ${LOOP_MS} ms`,
      met: loop.loopDelayP99Ms <= LOOP_MS,
      detail: undefined,
    },
  ];
}

function atRest(rests: readonly Rest[]): readonly Row[] {
  const worst = most(rests, ({ memoryMb }) => memoryMb);
  if (worst === undefined) return [];
  return [
    {
      scenario: "memory, at rest",
      ceiling: "-",
      measured: `${Math.round(worst.afterS)} s after ${worst.scenario} (${worst.on})`,
      figure: mb(worst.memoryMb),
      target: `≤ ${IDLE_MB} MB`,
      met: worst.memoryMb <= IDLE_MB,
      detail: rests,
    },
  ];
}

function most<T>(all: readonly T[], of: (one: T) => number): T | undefined {
  return all.toSorted((a, b) => of(b) - of(a))[0];
}
