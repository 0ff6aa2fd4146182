/** Work in small steps: each `next()` does one, and other work may run between two of them. */
export type Steps<T> = Generator<void, T, void>;

/** Does all of it at once. */
export function runSync<T>(steps: Steps<T>): T {
  for (;;) {
    const { done, value } = steps.next();
    if (done === true) return value;
  }
}

const SLICE_MS = 4;

/**
 * Lets other work run during long loops of small steps. All loops share one time slice in each turn of the event loop:
 * with one slice each, eight batches that come together would keep everybody else waiting for eight slices.
 *
 * A loop checks before each step, the first one too: `if (eventLoop.shouldYield()) await eventLoop.yield();`
 */
export class Yielder {
  readonly #nowMs: () => number;
  readonly #nextTurn: (callback: () => void) => void;
  readonly #sliceMs: number;
  readonly #waiting: (() => void)[] = [];
  /** When the slice of this turn began; `undefined` before its first step. */
  #startedMs: number | undefined;

  /** @param nextTurn calls back in the next turn of the event loop, after what else was waiting */
  constructor(nowMs: () => number, nextTurn: (callback: () => void) => void, sliceMs = SLICE_MS) {
    this.#nowMs = nowMs;
    this.#nextTurn = nextTurn;
    this.#sliceMs = sliceMs;
  }

  /** Whether the slice of this turn is used up. */
  shouldYield(): boolean {
    if (this.#startedMs !== undefined) return this.#nowMs() - this.#startedMs >= this.#sliceMs;
    this.#startSlice();
    return false;
  }

  /** Resolves in the order of the calls, in a later turn's slice: several in one turn if they take little of it. */
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
    this.#startedMs = this.#nowMs();
    this.#nextTurn(() => {
      this.#startedMs = undefined;
      if (this.#waiting.length === 0) return;
      this.#startSlice();
      this.#continueNext();
    });
  }

  #continueNext(): void {
    this.#waiting.shift()?.();
    if (this.#waiting.length === 0) return;
    // Ticks come after all microtasks when a microtask asks for one: so this is after all that the one does without waiting.
    queueMicrotask(() =>
      process.nextTick(() => {
        if (!this.shouldYield()) this.#continueNext();
      }),
    );
  }
}

/** All long loops of this thread share this one. */
export const eventLoop = new Yielder(() => performance.now(), setImmediate);
