/** What was missed within this, as a timer came late, is made up for; it is all the burst there is. */
const BURST_MS = 50;

/**
 * Keeps attempts to so many a second (the generic cell rate algorithm): each has its slot, and none begins earlier than
 * a little before it. So no second sees more than the rate, a twentieth of it, and one.
 */
export class Pacer {
  readonly perSecond: number;
  readonly #gapMs: number;
  /** The slot of the next. */
  #slotMs = -Infinity;

  /**
   * @param perSecond above 0
   * @param before the one it takes the place of: it goes on from its slot, so that a change of the rate is no free turn
   */
  constructor(perSecond: number, before?: Pacer) {
    this.perSecond = perSecond;
    this.#gapMs = 1_000 / perSecond;
    if (before !== undefined) this.#slotMs = before.#slotMs;
  }

  began(nowMs: number): void {
    this.#slotMs = this.#nextSlotMs(nowMs) + this.#gapMs;
  }

  mayBegin(nowMs: number): boolean {
    return this.beginsAtMs(0, nowMs) <= nowMs;
  }

  /** When one may begin that has so many before it. */
  beginsAtMs(before: number, nowMs: number): number {
    return Math.max(nowMs, this.#nextSlotMs(nowMs) + before * this.#gapMs - BURST_MS);
  }

  /** How many may have begun by then. */
  countBy(untilMs: number, nowMs: number): number {
    const leftMs = untilMs + BURST_MS - this.#nextSlotMs(nowMs);
    return leftMs < 0 ? 0 : 1 + Math.floor(leftMs / this.#gapMs);
  }

  /** Whether a new one would be no different. */
  isRested(nowMs: number): boolean {
    return this.#slotMs <= nowMs;
  }

  /** Never further off than it can be by itself: a clock that was set back makes nobody wait. */
  #nextSlotMs(nowMs: number): number {
    return Math.max(nowMs, Math.min(this.#slotMs, nowMs + BURST_MS + this.#gapMs));
  }
}
