import { IDLE_MB } from "../memory.ts";
import type { Scenario } from "../rig.ts";
import { atMost, mb, ms, type Row } from "../row.ts";

const PEAK_MB = 250;
const LOOP_MS = 20;

export const memory: Scenario = {
  name: "memory",
  summary:
    "What the other scenarios did to their servers: memory under load and at rest, and the event loop.",
  async run(rig) {
    rig.options.say("memory: waiting for servers at rest");
    await rig.rests.over();
    const { seen } = rig.rests;
    const peak = most(rig.observations, ({ peakMb }) => peakMb);
    const loop = most(rig.observations, ({ loopDelayP99Ms }) => loopDelayP99Ms);
    const rest = most(seen, ({ memoryMb }) => memoryMb);
    const rows: Row[] = [];
    if (peak !== undefined) {
      const measured = `in ${peak.scenario} (${peak.on})`;
      rows.push({ scenario: "memory, most", measured, ...atMost(peak.peakMb, PEAK_MB, mb) });
    }
    if (loop !== undefined) {
      const measured = `in ${loop.scenario} (${loop.on})`;
      rows.push({ scenario: "event loop delay, p99", measured, ...atMost(loop.loopDelayP99Ms, LOOP_MS, ms) });
    }
    if (rest !== undefined) {
      const measured = `${Math.round(rest.afterS)} s after ${rest.scenario} (${rest.on})`;
      rows.push({
        scenario: "memory, at rest",
        measured,
        ...atMost(rest.memoryMb, IDLE_MB, mb),
        detail: seen,
      });
    }
    return rows;
  },
};

function most<T>(all: readonly T[], of: (one: T) => number): T | undefined {
  return all.toSorted((a, b) => of(b) - of(a))[0];
}
