import { monitorEventLoopDelay } from "node:perf_hooks";
import { isMainThread } from "node:worker_threads";
import { answerCalls } from "./calls.ts";
import { CpuShare } from "./cpu-share.ts";

// Loaded into the server under test before its own code, to look at its main thread from within. It looks only from `begin`
// to `end`.

/** Coarser than what is looked for is long, and yet so seldom that looking is next to no work. */
const RESOLUTION_MS = 10;
const LOOK_MS = 5;

/** From `begin` to `end`. */
export interface Vitals {
  /** Beyond the interval at which it is sampled. */
  readonly loopDelayP99Ms: number;
  readonly loopDelayMaxMs: number;
  /**
   * Most processor time the main thread took from one look to the next, which come every 5 ms unless something holds them
   * up: what the delay would have been with nothing else on the machine.
   */
  readonly loopCpuMaxMs: number;
  /** Of a core. */
  readonly mainThreadShare: number;
  readonly processShare: number;
  /** Processor time of the whole process. */
  readonly processMs: number;
}

const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
let cpu = new CpuShare();
let looks: NodeJS.Timeout | undefined;
let lastCpuMs = 0;
let loopCpuMaxMs = 0;

function look(): void {
  const { user, system } = process.threadCpuUsage();
  const cpuMs = (user + system) / 1_000;
  loopCpuMaxMs = Math.max(loopCpuMaxMs, cpuMs - lastCpuMs);
  lastCpuMs = cpuMs;
}

const calls = {
  begin(): void {
    delay.reset();
    delay.enable();
    looks ??= setInterval(look, LOOK_MS).unref();
    cpu = new CpuShare();
    look();
    loopCpuMaxMs = 0;
  },
  end(): Vitals {
    delay.disable();
    clearInterval(looks);
    looks = undefined;
    const { mainThread, process, processMs } = cpu.read();
    return {
      loopDelayP99Ms: beyondIntervalMs(delay.percentile(99)),
      loopDelayMaxMs: beyondIntervalMs(delay.max),
      loopCpuMaxMs,
      mainThreadShare: mainThread,
      processShare: process,
      processMs,
    };
  },
};
export type ProbeCalls = typeof calls;

function beyondIntervalMs(ns: number): number {
  return Math.max(0, ns / 1e6 - RESOLUTION_MS);
}

// The server's other threads load this too.
if (isMainThread) {
  answerCalls(calls);
  // The channel must not keep a stopped server alive.
  process.channel?.unref();
}
