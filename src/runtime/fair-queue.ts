interface Entry<T> {
  readonly item: T;
  readonly bytes: number;
  readonly stopListening: () => void;
}

/** How an item leaves the queue before its turn. */
export interface Withdrawal {
  readonly signal: AbortSignal;
  /** Called with the signal's reason, after the item was removed. */
  readonly onAbort: (reason: Error) => void;
}

/** A queue that serves callers in rotation, so that nobody waits for all items of another. Each caller's items are in order. */
export class FairQueue<T> {
  /** What each caller has in the queue, the caller whose turn is next first. No list is empty. */
  readonly #queues = new Map<unknown, { readonly entries: Set<Entry<T>>; bytes: number }>();

  get isEmpty(): boolean {
    return this.#queues.size === 0;
  }

  countOf(caller: unknown): number {
    return this.#queues.get(caller)?.entries.size ?? 0;
  }

  bytesOf(caller: unknown): number {
    return this.#queues.get(caller)?.bytes ?? 0;
  }

  /** @param bytes counted for `bytesOf` */
  push(caller: unknown, item: T, withdrawal?: Withdrawal, bytes = 0): void {
    let queue = this.#queues.get(caller);
    if (queue === undefined) this.#queues.set(caller, (queue = { entries: new Set(), bytes: 0 }));
    const leave = (): void => {
      this.#remove(caller, entry);
      withdrawal!.onAbort(withdrawal!.signal.reason as Error);
    };
    const stopListening = (): void => withdrawal?.signal.removeEventListener("abort", leave);
    const entry: Entry<T> = { item, bytes, stopListening };
    queue.entries.add(entry);
    queue.bytes += bytes;
    withdrawal?.signal.addEventListener("abort", leave, { once: true });
  }

  /** Takes the item whose turn it is out of the queue. */
  next(): T | undefined {
    for (const [caller, queue] of this.#queues) {
      const [entry] = queue.entries;
      entry!.stopListening();
      this.#remove(caller, entry!);
      // Behind all others, if it has more.
      if (this.#queues.delete(caller)) this.#queues.set(caller, queue);
      return entry!.item;
    }
    return undefined;
  }

  #remove(caller: unknown, entry: Entry<T>): void {
    const queue = this.#queues.get(caller);
    if (queue?.entries.delete(entry) !== true) return;
    queue.bytes -= entry.bytes;
    if (queue.entries.size === 0) this.#queues.delete(caller);
  }
}
