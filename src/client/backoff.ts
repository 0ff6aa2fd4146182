import { setTimeout as sleep } from "node:timers/promises";
import type { EvregError } from "../domain/error.ts";

/** Failures after which the same request may well succeed. */
export function isPassing({ code }: EvregError): boolean {
  return ["unreachable", "unavailable", "rate_limited", "internal"].includes(code);
}

const FIRST_WAIT_MS = 250;

/** The waits before a request is made again, each twice as long as the one before. */
export class Backoff {
  readonly #maxMs: number;
  #waitMs = FIRST_WAIT_MS;

  constructor(maxMs: number) {
    this.#maxMs = maxMs;
  }

  /** Waits as long as the failure asks for at least. Ends early, and without an error, with the signal. */
  async pause({ retryAfterMs = 0 }: EvregError, signal?: AbortSignal): Promise<void> {
    // Callers do not come all at once after a server has started again.
    const jitteredMs = this.#waitMs * (0.5 + Math.random());
    this.#waitMs = Math.min(this.#maxMs, 2 * this.#waitMs);
    const options = signal === undefined ? {} : { signal };
    await sleep(Math.max(retryAfterMs, jitteredMs), undefined, options).catch(() => undefined);
  }
}
