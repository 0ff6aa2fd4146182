import { throttleBackoffMs } from "../domain/retry.ts";
import { NO_SETTINGS, type SubscriptionSettings } from "../domain/subscription-settings.ts";
import type { AttemptResult, Claim } from "../store/queue.ts";
import type { Refusal } from "./attempt.ts";
import { Pacer, QUICK, SLOW, type Tier, UNKNOWN, Window } from "./limits.ts";

/** An answer within this is a quick one; and so long nothing that is leased waits to be begun. */
export const QUICK_MS = 1_000;
/** A quick subscription is leased ahead what it gets through in about this time. */
const AHEAD_MS = 100;
const MOST_AHEAD = 512;
/** Most that are leased for a filter to look at: as many as one claim brings. */
const MOST_FILTERED = 256;
/** How much the last answer counts in the time that answers take. */
const LAST_SHARE = 1 / 8;

/** A delivery that is leased and not begun. */
interface Waiting {
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
  /** It is among the turns of the local queue. */
  hasTurn = false;
  /** What the payloads of its attempts under way come to. */
  bytesUnderWay = 0;
  readonly #window: Window;
  /** The service's limit to it; its own is among its settings. */
  readonly #mostWindow: number;
  #settings: SubscriptionSettings = NO_SETTINGS;
  #isOutdated = false;
  #pacer: Pacer | undefined;
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
  #failedAtMs = -Infinity;
  #holds = 0;
  /** How many its filter keeps back one after the other, lately. */
  #keptBack = 0;

  constructor(subscriptionId: number, mostWindow: number) {
    this.subscriptionId = subscriptionId;
    this.#mostWindow = mostWindow;
    this.#window = new Window(mostWindow);
  }

  /** As a claim or a change told them. */
  settle(settings: SubscriptionSettings): void {
    if (settings === this.#settings) return;
    this.#settings = settings;
    this.#window.limitTo(Math.min(this.#mostWindow, settings.max_in_flight ?? Infinity));
    const { rate_limit: perSecond } = settings;
    if (perSecond === null) this.#pacer = undefined;
    else if (this.#pacer?.perSecond !== perSecond) this.#pacer = new Pacer(perSecond, this.#pacer);
  }

  /** Its subscription was changed. What a claim still brings that was asked for before may be as it was. */
  changed(settings: SubscriptionSettings): void {
    this.settle(settings);
    this.#isOutdated = true;
  }

  /** A claim is asked for, which brings it as it is. */
  asked(): void {
    this.#isOutdated = false;
  }

  /** Nothing of what a claim brings now may be begun: it is held, or that claim may not know of a change. */
  get takesNone(): boolean {
    return this.isHeld || this.#isOutdated;
  }

  /** Keeps its attempts to its rate, if it has one. */
  get pacer(): Pacer | undefined {
    return this.#pacer;
  }

  /** It takes one delivery after the other, each when the end of the one before is stored. */
  get isOrdered(): boolean {
    return this.#settings.ordered;
  }

  /** What it may have under way. */
  get window(): number {
    return this.isOrdered ? 1 : this.#window.size;
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

  /** Nothing more may be leased. The store has nothing for an ordered one before all that it has is done. */
  get isBusy(): boolean {
    return this.isHeld || (this.isOrdered && this.leased > 0);
  }

  /** Whether nothing would be lost with it but what is known of its handler. */
  isIdle(nowMs: number): boolean {
    return this.leased === 0 && this.#holds === 0 && this.#pacer?.isRested(nowMs) !== false;
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

  /** How many more may be leased to be sent: at its rate, what is leased ahead must be begun soon. */
  roomAtRate(nowMs: number): number {
    return Math.max(0, this.#atRate(nowMs) - this.waiting);
  }

  #atRate(nowMs: number): number {
    return this.#pacer?.countBy(nowMs + AHEAD_MS, nowMs) ?? Infinity;
  }

  /** Where its rate is all that keeps it from more: when half of what waits will have begun. */
  nextRoomAtMs(nowMs: number): number | undefined {
    if (!this.hasMore || this.isBusy || this.leased >= this.planned.mostLeased) return undefined;
    return this.#pacer?.beginsAtMs(Math.ceil(this.waiting / 2), nowMs);
  }

  /** How many more may be leased as its filter will keep them back, which takes no place. */
  get toFilter(): number {
    return !this.isFull ? Math.min(MOST_FILTERED, this.#keptBack) : 0;
  }

  /** Whether it has some leased for its filter to look at, and an attempt is in their way that may take long. */
  isOverfull(nowMs: number): boolean {
    return this.#keptBack > 0 && this.isFull && this.tier(nowMs) !== QUICK;
  }

  /** Whether it had no room for all that may be due, and has by now, and not only for one or two. */
  isHungry(nowMs: number): boolean {
    if (!this.hasMore) return false;
    const atRate = this.#atRate(nowMs);
    if (atRate === 0 || this.waiting * 2 > atRate) return false;
    if (this.isOrdered) return this.leased === 0;
    return this.leased < this.planned.mostLeased && this.waiting * 2 <= this.ahead(nowMs) + this.toFilter;
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

  /** Its filter has kept one back. */
  keptBack(): void {
    this.#keptBack = Math.min(2 * MOST_FILTERED, this.#keptBack + 1);
  }

  began(nowMs: number, bytes = 0): void {
    this.bytesUnderWay += bytes;
    this.#keptBack >>= 1;
    if (this.#underWay === 0) this.#busySinceMs = nowMs;
    this.#underWay += 1;
    this.#pacer?.began(nowMs);
  }

  /** @param isFault whether it says that something is wrong with the handler */
  answered(nowMs: number, durationMs: number, isFault: boolean): void {
    if (isFault) this.#window.faulted();
    else this.#window.answered(durationMs, this.#underWay);
    this.#noteAnswer(nowMs, durationMs);
    this.#isRefusing = false;
    this.#refusals = 0;
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
      this.#window.halve();
      return 0;
    }
    this.#refusals += 1;
    return throttleBackoffMs(this.#refusals);
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
  failed(nowMs: number, startedAtMs: number): void {
    this.#underWay -= 1;
    // Of what began before it and is answered all the same, another failure tells nothing new.
    if (startedAtMs >= this.#failedAtMs || this.#answeredAtMs < this.#failedAtMs) {
      this.#window.halve();
      this.#failedAtMs = nowMs;
    }
    // One of many may be lost while the others are answered.
    if (this.#outlook !== QUICK || nowMs - this.#answeredAtMs > QUICK_MS) this.#outlook = SLOW;
  }

  /** An attempt was cut short, which tells nothing. */
  interrupted(): void {
    this.#underWay -= 1;
  }
}

/** What is known of subscriptions that have nothing to do is kept for so many. */
const MOST_IDLE = 1_000;

/** The subscriptions that the engine has to do with. */
export class Flows implements Iterable<Flow> {
  readonly #mostWindow: number;
  readonly #flows = new Map<number, Flow>();

  constructor(mostWindow: number) {
    this.#mostWindow = mostWindow;
  }

  [Symbol.iterator](): Iterator<Flow> {
    return this.#flows.values();
  }

  of(subscriptionId: number): Flow {
    let flow = this.#flows.get(subscriptionId);
    if (flow === undefined) {
      flow = new Flow(subscriptionId, this.#mostWindow);
      this.#flows.set(subscriptionId, flow);
    }
    return flow;
  }

  /** Forgets those that have been idle, the oldest first, while there are too many. */
  tidy(nowMs: number): void {
    if (this.#flows.size <= MOST_IDLE) return;
    for (const [id, flow] of this.#flows) {
      if (flow.isIdle(nowMs)) this.#flows.delete(id);
      if (this.#flows.size <= MOST_IDLE) return;
    }
  }
}

/**
 * Subscriptions that are slowed down. That they are is kept in the store, where claims mind it; until it is there, the
 * flow is held here.
 */
export class Slowing {
  readonly #unstored = new WeakMap<AttemptResult, Flow>();

  /** Takes note of an answer that may slow its subscription down. Answers the result as it is to be stored. */
  refused(flow: Flow, result: AttemptResult, { handler, askedMs }: Refusal, nowMs: number): AttemptResult {
    const waitMs = Math.max(askedMs, flow.refused(nowMs, result.durationMs, result.startedAtMs));
    if (waitMs === 0) return result;
    const slowing: AttemptResult = { ...result, slow: { untilMs: nowMs + waitMs, handler } };
    this.#unstored.set(slowing, flow);
    flow.hold();
    return slowing;
  }

  stored(result: AttemptResult): void {
    this.#unstored.get(result)?.release();
    this.#unstored.delete(result);
  }
}

/**
 * Ordered subscriptions. Several of their deliveries are leased at a time, and the next one begins when the end of the one
 * before is stored: after a crash nothing is sent again that another came after.
 */
export class TurnTaking {
  readonly #unstored = new WeakMap<AttemptResult, Flow>();

  ended(flow: Flow, result: AttemptResult): void {
    this.#unstored.set(result, flow);
    flow.storing();
  }

  /** Answers whose turn may have come by that. */
  stored(result: AttemptResult): Flow | undefined {
    const flow = this.#unstored.get(result);
    if (flow === undefined) return undefined;
    this.#unstored.delete(result);
    flow.stored();
    return flow;
  }
}
