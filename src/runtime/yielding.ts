/** Work made of small steps: each `next()` does one, and others may run between two of them. */
export type Steps<T> = Generator<void, T, void>;

/** Does all of it at once. */
export function runSync<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

const SLICE_MS = 4;

export interface YielderOptions {
  readonly nowMs: () => number;
  /** Calls back in the next turn of the event loop, after what else was waiting. */
  readonly nextTurn: (callback: () => void) => void;
}

/**
 * Lets other work run during long loops of small steps. All loops share one time slice in each turn of the event loop:
 * with one slice each, eight batches that come together would keep everybody else waiting for eight slices.
 *
 * A loop checks before each step, the first one too: `if (eventLoop.shouldYield()) await eventLoop.yield();`
 */
export class Yielder {
  readonly #options: YielderOptions;
  readonly #waiting: (() => void)[] = [];
  /** When the slice of this turn began; `undefined` before its first step. */
  #startedMs: number | undefined;

  constructor(options: YielderOptions) {
    this.#options = options;
  }

  /** Whether the slice of this turn is used up. */
  shouldYield(): boolean {
    if (this.#startedMs !== undefined) return this.#options.nowMs() - this.#startedMs >= SLICE_MS;
    this.#startSlice();
    return false;
  }

  /** Resolves in a later turn, with a new slice: one caller in each turn, in the order of the calls. */
  yield(): Promise<void> {
    if (this.#startedMs === undefined) this.#startSlice();
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  /**
   * Does all steps, yielding between them.
   * @param signal ends it before the next step; rejects with its reason
   */
  async run<T>(steps: Steps<T>, signal?: AbortSignal): Promise<T> {
    for (;;) {
      if (this.shouldYield()) await this.yield();
      signal?.throwIfAborted();
      const { done, value } = steps.next();
      if (done === true) return value;
    }
  }

  #startSlice(): void {
    this.#startedMs = this.#options.nowMs();
    this.#options.nextTurn(() => {
      this.#startedMs = undefined;
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#startSlice();
      next();
    });
  }
}

/** The one of this thread: every long loop on it shares this. */
export const eventLoop = new Yielder({ nowMs: () => performance.now(), nextTurn: setImmediate });
