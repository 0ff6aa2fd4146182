/** How much processor time this process and its main thread have used since the start, in milliseconds and of a core. */
export class CpuShare {
  readonly #startedMs = performance.now();
  readonly #process = process.cpuUsage();
  readonly #thread = process.threadCpuUsage();

  read(): { readonly process: number; readonly mainThread: number; readonly processMs: number } {
    const wallUs = (performance.now() - this.#startedMs) * 1_000;
    const whole = process.cpuUsage(this.#process);
    const wholeUs = whole.user + whole.system;
    const thread = process.threadCpuUsage(this.#thread);
    return {
      process: wholeUs / wallUs,
      mainThread: (thread.user + thread.system) / wallUs,
      processMs: wholeUs / 1_000,
    };
  }
}
