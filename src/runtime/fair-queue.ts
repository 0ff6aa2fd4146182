/** A line in which callers take turns, so that nobody waits for all that another has asked for; each caller's own are in order. */
export class CallerLine<T> {
  /** What waits for each caller, by whose turn it is. No set is empty. */
  readonly #waiting = new Map<object, Set<T>>();

  /** How many of a caller's wait. */
  countOf(caller: object): number {
    return this.#waiting.get(caller)?.size ?? 0;
  }

  get isEmpty(): boolean {
    return this.#waiting.size === 0;
  }

  add(caller: object, one: T): void {
    const own = this.#waiting.get(caller) ?? new Set();
    own.add(one);
    this.#waiting.set(caller, own);
  }

  remove(caller: object, one: T): void {
    const own = this.#waiting.get(caller);
    if (own?.delete(one) === true && own.size === 0) this.#waiting.delete(caller);
  }

  /** Takes the one whose turn it is out of the line. */
  next(): T | undefined {
    for (const [caller, own] of this.#waiting) {
      this.#waiting.delete(caller);
      for (const one of own) {
        own.delete(one);
        if (own.size > 0) this.#waiting.set(caller, own);
        return one;
      }
    }
    return undefined;
  }
}
