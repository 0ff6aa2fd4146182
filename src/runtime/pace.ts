const LONGEST_RUN_MS = 4;

export interface PaceParts {
  readonly nowMs: () => number;
  /** Calls back in the next turn of the event loop, when what else is waiting has had its chance. */
  readonly nextTurn: (callback: () => void) => void;
}

/**
 * Lets other work in during long runs of small steps. The runs share one stretch of time in each turn of the event loop:
 * with one for each, eight batches that come together would keep everybody else waiting for eight. A run looks at `isDue`
 * before each step, the first one too, and awaits `breathe` when it is.
 */
export class Pace {
  readonly #parts: PaceParts;
  readonly #waiting: (() => void)[] = [];
  /** When the first step of this turn was made; `undefined` before. */
  #beganMs: number | undefined;

  constructor(parts: PaceParts) {
    this.#parts = parts;
  }

  /** Whether the next step needs leave: none was given in this turn, or its time is over. */
  get isDue(): boolean {
    return this.#beganMs === undefined || this.#parts.nowMs() - this.#beganMs >= LONGEST_RUN_MS;
  }

  /** Resolves when it is the caller's time: at once when there is some left, else in a later turn, one caller in each. */
  breathe(): Promise<void> {
    if (this.#waiting.length > 0 || (this.#beganMs !== undefined && this.isDue)) {
      return new Promise((resolve) => {
        this.#waiting.push(resolve);
      });
    }
    if (this.#beganMs === undefined) this.#begin();
    return Promise.resolve();
  }

  #begin(): void {
    this.#beganMs = this.#parts.nowMs();
    this.#parts.nextTurn(() => {
      this.#beganMs = undefined;
      const next = this.#waiting.shift();
      if (next === undefined) return;
      this.#begin();
      next();
    });
  }
}

/** The one of this thread's event loop: whatever runs long on it shares this. */
export const loopPace = new Pace({ nowMs: () => performance.now(), nextTurn: setImmediate });
