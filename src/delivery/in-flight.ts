export interface Share {
  /** Deliveries to claim now; 0 when there is no room. */
  readonly limit: number;
  /** Attempts one subscription may then have under way. */
  readonly perSubscription: number;
}

/** The attempts under way, and how many more there may be. */
export class InFlight {
  readonly #max: number;
  readonly #maxPerSubscription: number;
  readonly #onEnded: () => void;
  readonly #attempts = new Map<AbortController, Promise<void>>();
  readonly #bySubscription = new Map<number, number>();

  /** @param onEnded called after each attempt, its room free again */
  constructor(max: number, maxPerSubscription: number, onEnded: () => void) {
    this.#max = max;
    this.#maxPerSubscription = maxPerSubscription;
    this.#onEnded = onEnded;
  }

  get size(): number {
    return this.#attempts.size;
  }

  /** Attempts under way by subscription; changes as they begin and end. */
  get bySubscription(): ReadonlyMap<number, number> {
    return this.#bySubscription;
  }

  /**
   * Never the last room to those that have much: one subscription may have at most an eighth as many attempts under way
   * as are still free (the dynamic thresholds of shared-memory switches). Each handler that hangs so takes a smaller part
   * than the one before; of 256 attempts, 30 handlers hanging at once leave some free for the next.
   */
  share(): Share {
    const free = this.#max - this.#attempts.size;
    if (free <= 0) return { limit: 0, perSubscription: 1 };
    return {
      limit: Math.ceil(free / 2),
      perSubscription: Math.max(1, Math.min(this.#maxPerSubscription, Math.floor(free / 8))),
    };
  }

  /** Runs an attempt; it counts until its promise settles, which must not reject. */
  run(subscriptionId: number, attempt: (signal: AbortSignal) => Promise<void>): void {
    const controller = new AbortController();
    this.#count(subscriptionId, 1);
    const settled = attempt(controller.signal).finally(() => {
      this.#attempts.delete(controller);
      this.#count(subscriptionId, -1);
      this.#onEnded();
    });
    this.#attempts.set(controller, settled);
  }

  abortAll(): void {
    for (const controller of this.#attempts.keys()) controller.abort();
  }

  /** Resolves when those under way now have settled. */
  async settled(): Promise<void> {
    await Promise.all(this.#attempts.values());
  }

  #count(subscriptionId: number, change: 1 | -1): void {
    const count = (this.#bySubscription.get(subscriptionId) ?? 0) + change;
    if (count === 0) this.#bySubscription.delete(subscriptionId);
    else this.#bySubscription.set(subscriptionId, count);
  }
}
