/**
 * How many attempts a subscription may have under way of which nothing is known. One tells as much as many, and when many
 * handlers hang at a start, each takes one place.
 */
export const FIRST_WINDOW = 1;
/** Up to here it grows with each answer, whatever that says and however long it takes: the handler is there. */
const UNCONDITIONAL = 32;
/**
 * Where answers take less, `UNCONDITIONAL` at a time are more than a thousand a second already. Such times may be this
 * process's own, where it has too little of a processor: more at a time then only cost more, by a fifth of the rate.
 */
const LEAST_MS = 25;
/** How much longer than usual answers may take before that counts as too much for the handler. */
const TOLERANCE = 1.5;
/** How much of the window must be in use for it to grow: what is not used tells nothing. */
const USED_PART = 3 / 4;
/** Beyond `UNCONDITIONAL`, by how much of an answer: by half in the time of one answer. */
const STEP = 1 / 2;
/** How much less than usual answers must take for the usual time to follow them, and how fast it does. */
const LESS = 4 / 5;
const FOLLOW = 1 / 8;
/** The median of so many answers tells what they take now; of fewer where fewer are under way. */
const SAMPLE = 64;

/**
 * How many attempts a subscription may have under way at a time: a limit that adapts to what its handler takes.
 *
 * It grows while answers take as long as ever, and comes down where they take longer the more of them there are (a
 * gradient limiter). What they usually take is learnt with few under way, so a handler that is slow, and steadily so, is
 * not taken for one that has too much. One that has become slower is learnt anew, as the limit comes down to few by that.
 * Attempts without an answer, and answers that say "too much", halve it.
 */
export class Window {
  #most: number;
  /** With a fraction. */
  #size = FIRST_WINDOW;
  /** What answers took with few under way, or less since; unknown before the first sample. */
  #usualMs: number | undefined;
  #sample: number[] = [];
  #isSteady = true;
  /** Answers to come that began before it was lowered last. */
  #stale = 0;

  constructor(most: number) {
    this.#most = most;
  }

  get size(): number {
    return Math.floor(this.#size);
  }

  limitTo(most: number): void {
    this.#most = most;
    this.#size = Math.min(this.#size, most);
  }

  /** @param underWay how many there were, this one included */
  answered(durationMs: number, underWay: number): void {
    this.#stale -= 1;
    this.#sample.push(durationMs);
    if (this.#sample.length >= Math.min(this.#size, SAMPLE)) this.#judge(underWay);
    if (this.#size < UNCONDITIONAL) this.#size = Math.min(this.#most, this.#size + 1);
    else if (this.#isSteady && underWay >= this.#size * USED_PART) {
      this.#size = Math.min(this.#most, this.#size + STEP);
    }
  }

  /** The handler is there, and something is wrong with it: no reason for more than a few. */
  faulted(): void {
    if (this.#size < UNCONDITIONAL) this.#size = Math.min(this.#most, this.#size + 1);
    else this.#size = Math.max(UNCONDITIONAL, this.#size - 1);
  }

  halve(): void {
    this.#size = Math.max(1, Math.floor(this.#size / 2));
    this.#sample = [];
  }

  #judge(underWay: number): void {
    const tookMs = median(this.#sample);
    this.#sample = [];
    if (this.#usualMs === undefined || this.#size <= UNCONDITIONAL) this.#usualMs = tookMs;
    else if (tookMs < this.#usualMs * LESS) this.#usualMs += (tookMs - this.#usualMs) * FOLLOW;
    const boundMs = this.#usualMs * TOLERANCE;
    const isTooMuch = tookMs > boundMs;
    this.#isSteady = !isTooMuch && tookMs >= LEAST_MS;
    if (!isTooMuch || this.#stale > 0 || this.#size <= UNCONDITIONAL) return;
    this.#size = Math.max(UNCONDITIONAL, this.#size * Math.max(1 / 2, boundMs / tookMs));
    this.#stale = underWay;
  }
}

function median(numbers: readonly number[]): number {
  return numbers.toSorted((one, other) => one - other)[Math.floor(numbers.length / 2)]!;
}
