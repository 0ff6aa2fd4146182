import { readFileSync } from "node:fs";

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
