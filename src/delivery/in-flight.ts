/** Something under way that can be cut short; it then ends soon. */
export interface Interruptible {
  interrupt(): void;
}

/** The attempts under way. */
export class InFlight {
  readonly #attempts = new Set<Interruptible>();
  #idle: PromiseWithResolvers<void> | undefined;

  get size(): number {
    return this.#attempts.size;
  }

  add(attempt: Interruptible): void {
    this.#attempts.add(attempt);
  }

  delete(attempt: Interruptible): void {
    this.#attempts.delete(attempt);
    if (this.#attempts.size > 0) return;
    this.#idle?.resolve();
    this.#idle = undefined;
  }

  interruptAll(): void {
    for (const attempt of this.#attempts) attempt.interrupt();
  }

  /** Resolves when there is none. */
  async settled(): Promise<void> {
    if (this.#attempts.size === 0) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
  }
}
