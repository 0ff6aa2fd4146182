import { EvregError } from "../domain/error.ts";
import { FairQueue } from "../runtime/shares.ts";

interface TurnLimits {
  /** How many callers are served at once; all, if it is left out. */
  readonly atOnce?: number;
  /** How many works of one caller may wait; any number, if it is left out. */
  readonly maxWaiting?: number;
}

interface TurnOptions {
  /** Takes the work out of the queue. One that runs goes on, and nobody waits for it. */
  readonly signal?: AbortSignal | undefined;
  /** Replaces the limit that all others have. */
  readonly maxWaiting?: number | undefined;
}

interface WaitingWork {
  readonly caller: unknown;
  readonly begin: () => Promise<void>;
}

/** Does work for callers in rotation: one work of each caller at a time, those of a caller in their order. */
export class CallerTurns {
  readonly #limits: Required<TurnLimits>;
  readonly #waiting = new FairQueue<WaitingWork>();
  readonly #served = new Set<unknown>();

  constructor({ atOnce = Infinity, maxWaiting = Infinity }: TurnLimits = {}) {
    this.#limits = { atOnce, maxWaiting };
  }

  /**
   * @param caller the same value for the same caller
   * @throws EvregError `unavailable` when too many of the caller's wait; the signal's reason once that is aborted
   */
  async run<T>(caller: unknown, work: () => Promise<T>, options: TurnOptions = {}): Promise<T> {
    const { signal, maxWaiting = this.#limits.maxWaiting } = options;
    signal?.throwIfAborted();
    if (this.#waiting.itemsOf(caller).length >= maxWaiting) {
      throw new EvregError(
        "unavailable",
        "Too much that you asked for, and that takes long, waits. Nothing of this was stored; try again in some seconds.",
      );
    }
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const begin = async (): Promise<void> => {
      try {
        resolve(await work());
      } catch (error) {
        reject(error);
      } finally {
        this.#served.delete(caller);
        this.#beginNext();
      }
    };
    const leaveQueue = this.#waiting.push(caller, { caller, begin });
    const leave = (): void => {
      leaveQueue();
      reject(signal!.reason);
    };
    signal?.addEventListener("abort", leave);
    this.#beginNext();
    return promise.finally(() => signal?.removeEventListener("abort", leave));
  }

  #beginNext(): void {
    while (this.#served.size < this.#limits.atOnce) {
      const next = this.#waiting.next((caller) => !this.#served.has(caller));
      if (next === undefined) return;
      this.#served.add(next.caller);
      void next.begin();
    }
  }
}
