const LONGEST_RUN_MS = 4;

export interface PaceParts {
  readonly nowMs: () => number;
  /** Calls back in the next turn of the event loop, when what else is waiting has had its chance. */
  readonly nextTurn: (callback: () => void) => void;
}

/**
 * Lets other work in during long runs of small steps. The runs share one stretch of time in each turn of the event loop:
 * with one for each, eight batches that come together would keep everybody else waiting for eight. A run asks before each
 * step, the first one too: `if (!pace.mayGoOn()) await pace.breathe();`
 */
export class Pace {
  readonly #parts: PaceParts;
  readonly #waiting: (() => void)[] = [];
  /** When the first step of this turn was made; `undefined` before. */
  #beganMs: number | undefined;

  constructor(parts: PaceParts) {
    this.#parts = parts;
  }

  /** Whether there is time for another step in this turn. */
  mayGoOn(): boolean {
    if (this.#beganMs !== undefined) return this.#parts.nowMs() - this.#beganMs < LONGEST_RUN_MS;
    this.#begin();
    return true;
  }

  /** Resolves in a later turn, with time for a step: one caller in each, in the order of asking. */
  breathe(): Promise<void> {
    if (this.#beganMs === undefined) this.#begin();
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    });
  }

  /** Does work made of steps, letting others in between them. */
  async walk<T>(steps: Iterator<void, T>): Promise<T> {
    for (;;) {
      if (!this.mayGoOn()) await this.breathe();
      const { done, value } = steps.next();
      if (done === true) return value;
    }
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
