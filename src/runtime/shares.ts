import { EvregError } from "../domain/error.ts";

/**
 * What callers share, such as streams or bytes. Who holds nothing gets what it asks for if that is free. Who holds some gets
 * more only if as much as it then holds stays free for others: half of all when it is alone, a third beside another that does
 * the same, and so on (the dynamic thresholds of shared buffers).
 */
export class Shares {
  readonly size: number;
  #used = 0;
  readonly #held = new Map<unknown, number>();

  constructor(size: number) {
    this.size = size;
  }

  get free(): number {
    return this.size - this.#used;
  }

  heldBy(caller: unknown): number {
    return this.#held.get(caller) ?? 0;
  }

  /** Takes an amount, which counts for half of all at most. `false` where that is too much for this caller now. */
  tryTake(caller: unknown, amount = 1): boolean {
    const counted = this.#counted(amount);
    const held = this.heldBy(caller);
    const left = this.free - counted;
    if (left < 0 || (held > 0 && held + counted > left)) return false;
    this.#used += counted;
    this.#held.set(caller, held + counted);
    return true;
  }

  /**
   * Gives back what `tryTake` took.
   * @param kept what the caller keeps of it
   */
  release(caller: unknown, amount = 1, kept = 0): void {
    const counted = this.#counted(amount) - this.#counted(kept);
    const left = this.heldBy(caller) - counted;
    this.#used -= counted;
    if (left > 0) this.#held.set(caller, left);
    else this.#held.delete(caller);
  }

  /**
   * Takes one place.
   * @param what the places are, as in "streams are open"
   * @throws EvregError `rate_limited` for a caller that holds its share, `unavailable` when all are taken
   */
  take(caller: unknown, what: string): void {
    if (this.tryTake(caller)) return;
    const { size } = this;
    const held = this.heldBy(caller);
    const details = { limit: size, held, others: this.#used - held };
    if (held === 0) {
      throw new EvregError(
        "unavailable",
        `${size} ${what} already, and no more at once. Try again in a moment.`,
        details,
      );
    }
    throw new EvregError(
      "rate_limited",
      `${held} of your ${what} already, and ${details.others} of others, of ${size} in all. That is your share while others need the rest: end one of yours, or try again in a moment.`,
      details,
    );
  }

  /** Something larger than a half has the half to itself. */
  #counted(amount: number): number {
    return Math.min(amount, this.size / 2);
  }
}

/** A queue that serves callers in rotation, so that nobody waits for all items of another. Each caller's items are in order. */
export class FairQueue<T extends object> {
  /** What each caller has in the queue, the caller whose turn is next first. No set is empty. */
  readonly #queues = new Map<unknown, Set<T>>();

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
