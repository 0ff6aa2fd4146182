/** A queue that serves callers in rotation, so that nobody waits for all items of another. Each caller's items are in order. */
export class FairQueue<T extends object> {
  /** What each caller has in the queue, the caller whose turn is next first. No set is empty. */
  readonly #queues = new Map<unknown, Set<T>>();

  get isEmpty(): boolean {
    return this.#queues.size === 0;
  }

  itemsOf(caller: unknown): readonly T[] {
    return [...(this.#queues.get(caller) ?? [])];
  }

  /** The first item of each caller, in the order of their turns. */
  heads(): readonly T[] {
    return [...this.#queues.values()].map(([head]) => head!);
  }

  /** Answers what takes the item out of the queue again; safe to call twice. */
  push(caller: unknown, item: T): () => void {
    const own = this.#queues.get(caller) ?? new Set();
    this.#queues.set(caller, own.add(item));
    return () => {
      if (own.delete(item) && own.size === 0) this.#queues.delete(caller);
    };
  }

  /** Puts a caller that was served behind all others. */
  endTurn(caller: unknown): void {
    const own = this.#queues.get(caller);
    if (own !== undefined && this.#queues.delete(caller) && own.size > 0) this.#queues.set(caller, own);
  }

  /**
   * Takes the item whose turn it is out of the queue.
   * @param isServed whether a caller may be served now; its turn passes to the next one otherwise
   */
  next(isServed: (caller: unknown) => boolean = () => true): T | undefined {
    for (const [caller, own] of this.#queues) {
      if (!isServed(caller)) continue;
      const [head] = own;
      own.delete(head!);
      this.endTurn(caller);
      return head;
    }
    return undefined;
  }
}
