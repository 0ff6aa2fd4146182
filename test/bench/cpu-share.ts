/** How much of a core a process and its main thread have used since the start. */
export class CpuShare {
  readonly #startedMs = performance.now();
  readonly #process = process.cpuUsage();
  readonly #thread = process.threadCpuUsage();

  read(): { readonly process: number; readonly mainThread: number } {
    const wallUs = (performance.now() - this.#startedMs) * 1_000;
    const whole = process.cpuUsage(this.#process);
    const thread = process.threadCpuUsage(this.#thread);
    return {
      process: (whole.user + whole.system) / wallUs,
      mainThread: (thread.user + thread.system) / wallUs,
    };
  }
}
