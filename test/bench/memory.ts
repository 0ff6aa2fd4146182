import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import type { BenchServer } from "./server.ts";

export interface Memory {
  readonly nowMb: number;
  /** The most since the process started. */
  readonly peakMb: number;
}

/** Resident memory as the system counts it; `undefined` once the process is gone. */
export function memoryOf(pid: number): Memory | undefined {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "latin1");
    const mb = (name: string): number =>
      Number(new RegExp(`^${name}:\\s+(\\d+) kB$`, "m").exec(status)?.[1]) / 1_024;
    const memory = { nowMb: mb("VmRSS"), peakMb: mb("VmHWM") };
    return Number.isNaN(memory.nowMb) ? undefined : memory;
  } catch {
    return undefined;
  }
}

/** What a server held some time after its load. */
export interface Rest {
  readonly scenario: string;
  readonly on: string;
  readonly memoryMb: number;
  readonly afterS: number;
}

/** Watching a server at rest ends when it holds no more than this, or after `LONGEST_MS`. */
export const IDLE_MB = 150;
const LONGEST_MS = 30_000;

/** Servers without load: each is watched until it has given memory back, or has had time enough, and is then stopped. */
export class Rests {
  readonly seen: Rest[] = [];
  readonly #watching: Promise<void>[] = [];

  /** Goes on beside whatever is measured next. */
  begin(scenario: string, on: string, server: BenchServer): void {
    this.#watching.push(this.#watch(scenario, on, server));
  }

  async #watch(scenario: string, on: string, server: BenchServer): Promise<void> {
    const startedMs = performance.now();
    for (;;) {
      const restedMs = performance.now() - startedMs;
      const memoryMb = memoryOf(server.child.pid)?.nowMb;
      // It was ended together with a scenario that failed.
      if (memoryMb === undefined) break;
      if (memoryMb <= IDLE_MB || restedMs >= LONGEST_MS) {
        this.seen.push({ scenario, on, memoryMb, afterS: restedMs / 1_000 });
        break;
      }
      await pause(250);
    }
    await server.stop();
  }

  /** Resolves when the last one has stopped. */
  async over(): Promise<void> {
    await Promise.all(this.#watching);
  }
}
