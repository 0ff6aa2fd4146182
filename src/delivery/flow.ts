import { refusalGapMs } from "../domain/retry.ts";
import type { Claim } from "../store/store.ts";
import { QUICK, SLOW, type Tier, UNKNOWN } from "./bulkhead.ts";
import { FIRST_WINDOW, grown, shrunk } from "./window.ts";

/** An answer within this is a quick one; and so long nothing that is leased waits to be begun. */
export const QUICK_MS = 1_000;
/** A quick subscription is leased ahead what it gets through in about this time. */
const AHEAD_MS = 100;
const MOST_AHEAD = 512;
/** How much the last answer counts in the time that answers take. */
const LAST_SHARE = 1 / 8;

/** A delivery that is leased and not begun. */
export interface Waiting {
  readonly claim: Claim;
  readonly sinceMs: number;
}

/** The deliveries of one subscription, and what its attempts so far tell of its handler. */
export class Flow {
  readonly subscriptionId: number;
  /** What the last claim was planned with. */
  planned: { readonly tier: Tier; readonly mostLeased: number } = { tier: UNKNOWN, mostLeased: 0 };
  /** There was no room for all that may be due. */
  hasMore = false;
  /** It takes one delivery after the other, each when the end of the one before is stored. */
  isOrdered = false;
  #window = FIRST_WINDOW;
  readonly #mostWindow: number;
  /** From `#begun` on; before it there is nothing. */
  readonly #waiting: (Waiting | undefined)[] = [];
  #begun = 0;
  #underWay = 0;
  /** Ended ones of an ordered subscription, until that is stored. */
  #unstored = 0;
  #outlook: Tier = UNKNOWN;
  /** How long answers take, lately. */
  #answerMs: number | undefined;
  #answeredAtMs = -Infinity;
  /** When the oldest of a row of attempts began, one or more of which were under way all the time since. */
  #busySinceMs = 0;
  /** Refusals one after the other while it had one attempt at a time. */
  #refusals = 0;
  #isRefusing = false;
  /** Of what began before it, another refusal tells nothing new. */
  #refusedAtMs = -Infinity;
  #holds = 0;

  constructor(subscriptionId: number, mostWindow: number) {
    this.subscriptionId = subscriptionId;
    this.#mostWindow = mostWindow;
  }

  /** What it may have under way. */
  get window(): number {
    return this.isOrdered ? 1 : this.#window;
  }

  get isFull(): boolean {
    return this.#underWay + this.#unstored >= this.window;
  }

  get underWay(): number {
    return this.#underWay;
  }

  /** Leased and not begun. */
  get waiting(): number {
    return this.#waiting.length - this.#begun;
  }

  get leased(): number {
    return this.waiting + this.#underWay + this.#unstored;
  }

  /** Nothing may be begun until what its handler asked for is stored, from where claims mind it. */
  get isHeld(): boolean {
    return this.#holds > 0;
  }

  /** Whether nothing would be lost with it but what is known of its handler. */
  get isIdle(): boolean {
    return this.leased === 0 && this.#holds === 0;
  }

  get head(): Waiting | undefined {
    return this.#waiting[this.#begun];
  }

  tier(nowMs: number): Tier {
    const isSilent = this.#underWay > 0 && nowMs - Math.max(this.#busySinceMs, this.#answeredAtMs) > QUICK_MS;
    return isSilent ? SLOW : this.#outlook;
  }

  /** How many may be leased beyond the window, so that the next is there when one ends. */
  ahead(nowMs: number): number {
    if (this.#isRefusing || this.tier(nowMs) !== QUICK) return 0;
    return Math.min(MOST_AHEAD, Math.floor((this.window * AHEAD_MS) / Math.max(1, this.#answerMs ?? 0)));
  }

  /** Whether it had no room for all that may be due, and has by now, and not only for one or two. */
  isHungry(nowMs: number): boolean {
    if (this.isOrdered) return this.hasMore && this.leased === 0;
    return this.hasMore && this.leased < this.planned.mostLeased && this.waiting * 2 <= this.ahead(nowMs);
  }

  lease(waiting: Waiting): void {
    this.#waiting.push(waiting);
  }

  /** Takes the one that has waited longest. */
  shift(): Waiting | undefined {
    const first = this.#waiting[this.#begun];
    if (first === undefined) return undefined;
    this.#waiting[this.#begun] = undefined;
    this.#begun += 1;
    // Cut off by the hundred, as cutting off one by one would move the whole list each time.
    if (this.#begun === this.#waiting.length || this.#begun >= MOST_AHEAD) {
      this.#waiting.splice(0, this.#begun);
      this.#begun = 0;
    }
    return first;
  }

  began(nowMs: number): void {
    if (this.#underWay === 0) this.#busySinceMs = nowMs;
    this.#underWay += 1;
  }

  answered(nowMs: number, durationMs: number): void {
    this.#noteAnswer(nowMs, durationMs);
    this.#isRefusing = false;
    this.#refusals = 0;
    this.#window = grown(this.#window, this.#mostWindow);
  }

  /**
   * The answer was one of those that say "too much" or "not now": fewer at once from now on and, where there is one at a
   * time already, growing gaps between them.
   * @returns how long nothing is to be begun
   */
  refused(nowMs: number, durationMs: number, startedAtMs: number): number {
    this.#noteAnswer(nowMs, durationMs);
    this.#isRefusing = true;
    if (startedAtMs < this.#refusedAtMs) return 0;
    this.#refusedAtMs = nowMs;
    if (this.window > 1) {
      this.#window = shrunk(this.#window);
      return 0;
    }
    this.#refusals += 1;
    return refusalGapMs(this.#refusals);
  }

  hold(): void {
    this.#holds += 1;
  }

  release(): void {
    this.#holds -= 1;
  }

  storing(): void {
    this.#unstored += 1;
  }

  stored(): void {
    this.#unstored -= 1;
  }

  #noteAnswer(nowMs: number, durationMs: number): void {
    this.#underWay -= 1;
    const before = this.#answerMs ?? durationMs;
    this.#answerMs = before + (durationMs - before) * LAST_SHARE;
    this.#answeredAtMs = nowMs;
    this.#outlook = durationMs <= QUICK_MS ? QUICK : SLOW;
  }

  /** An attempt got no answer. */
  failed(nowMs: number): void {
    this.#underWay -= 1;
    this.#window = shrunk(this.#window);
    // One of many may be lost while the others are answered.
    if (this.#outlook !== QUICK || nowMs - this.#answeredAtMs > QUICK_MS) this.#outlook = SLOW;
  }

  /** An attempt was cut short, which tells nothing. */
  interrupted(): void {
    this.#underWay -= 1;
  }
}
