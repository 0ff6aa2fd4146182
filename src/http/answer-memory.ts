import type { Clock } from "../runtime/clock.ts";
import { ByteBudget } from "./byte-budget.ts";

export interface AnswerLimits {
  /** What reads may come to that are under way at once, each taken at its largest. */
  readonly readBytes: number;
  /** What large answers hold at once until their callers have taken them. */
  readonly heldBytes: number;
  /** An answer up to this size is small: it is not held against `heldBytes`. */
  readonly smallBytes: number;
  /** How long a request waits for either. */
  readonly waitMs: number;
}

const ANSWER_LIMITS: AnswerLimits = {
  readBytes: 256 * 1024 * 1024,
  heldBytes: 256 * 1024 * 1024,
  smallBytes: 256 * 1024,
  waitMs: 10_000,
};

export interface Held<T> {
  readonly value: T;
  /** Once the answer made of it is out, or will never be; only for a large one. */
  readonly release?: () => void;
}

/**
 * Bounds the memory that listings take over all requests: a page may come to hundreds of megabytes, and a caller that
 * does not read its answer keeps it there. One page that is larger than a bound has it to itself.
 */
export class AnswerMemory {
  readonly #clock: Clock;
  readonly #limits: AnswerLimits;
  readonly #reading: ByteBudget;
  readonly #held: ByteBudget;

  constructor(clock: Clock, limits: Partial<AnswerLimits> = {}) {
    this.#clock = clock;
    this.#limits = { ...ANSWER_LIMITS, ...limits };
    this.#reading = new ByteBudget(clock, this.#limits.readBytes);
    this.#held = new ByteBudget(clock, this.#limits.heldBytes);
  }

  /**
   * Reads when there is room for it. What is too large to be held now is let go of, and read again when there is room
   * for that. `unavailable` when there is none in time.
   * @param largestBytes what the read can come to at most
   */
  async read<T>(
    largestBytes: number,
    read: () => Promise<T>,
    bytesOf: (value: T) => number,
  ): Promise<Held<T>> {
    const untilMs = this.#clock.now() + this.#limits.waitMs;
    const share: Share = { bytes: 0 };
    try {
      for (;;) {
        await this.#reading.take(largestBytes, untilMs - this.#clock.now());
        const outcome = await this.#readOnce(read, bytesOf, share).finally(() =>
          this.#reading.giveBack(largestBytes),
        );
        if (typeof outcome === "object") return outcome;
        this.#giveBack(share);
        await this.#held.take(outcome, untilMs - this.#clock.now());
        share.bytes = outcome;
      }
    } finally {
      this.#giveBack(share);
    }
  }

  /**
   * What was read, which then has the share; or how many bytes it needs to be held, where they are not free. A function of
   * its own, as otherwise what was let go of would stay in memory for as long as its request waits.
   */
  async #readOnce<T>(
    read: () => Promise<T>,
    bytesOf: (value: T) => number,
    share: Share,
  ): Promise<Held<T> | number> {
    const value = await read();
    const bytes = Math.min(bytesOf(value), this.#limits.heldBytes);
    if (bytes <= this.#limits.smallBytes) return { value };
    // The page may have changed while its request waited.
    if (bytes > share.bytes) {
      if (!this.#held.tryTake(bytes - share.bytes)) return bytes;
      share.bytes = bytes;
    }
    const owned: Share = { bytes: share.bytes };
    share.bytes = 0;
    return { value, release: () => this.#giveBack(owned) };
  }

  #giveBack(share: Share): void {
    if (share.bytes > 0) this.#held.giveBack(share.bytes);
    share.bytes = 0;
  }
}

/** What one request has of the bytes that may be held. */
interface Share {
  bytes: number;
}
