/** Something under way that can be cut short; it then ends soon. */
export interface Interruptible {
  interrupt(): void;
}

/** An attempt among those under way. */
export interface UnderWay extends Interruptible {
  /** Of its payload, which is held until it ends. */
  readonly bytes: number;
  /** For `InFlight`. */
  place?: number | undefined;
}

/**
 * The attempts under way. Not in a Set: each table that it empties leads to the next one, so once V8 has taken a table for
 * long-lived, it keeps all that came after.
 */
export class InFlight {
  readonly #attempts: UnderWay[] = [];
  #bytes = 0;
  #idle: PromiseWithResolvers<void> | undefined;

  get size(): number {
    return this.#attempts.length;
  }

  get bytes(): number {
    return this.#bytes;
  }

  add(attempt: UnderWay): void {
    attempt.place = this.#attempts.push(attempt) - 1;
    this.#bytes += attempt.bytes;
  }

  delete(attempt: UnderWay): void {
    const { place } = attempt;
    const last = this.#attempts.at(-1);
    if (place === undefined || last === undefined) return;
    this.#attempts[place] = last;
    last.place = place;
    this.#attempts.pop();
    attempt.place = undefined;
    this.#bytes -= attempt.bytes;
    if (this.#attempts.length > 0) return;
    this.#idle?.resolve();
    this.#idle = undefined;
  }

  interruptAll(): void {
    for (const attempt of this.#attempts.slice()) attempt.interrupt();
  }

  /** Resolves when there is none. */
  async settled(): Promise<void> {
    if (this.#attempts.length === 0) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
  }
}
