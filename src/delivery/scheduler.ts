import type { Subscription } from "../domain/subscription.ts";
import type { AttemptResult, Claim, ClaimAnswer, FinishOutcome, RecordClaim } from "../store/queue.ts";
import { ClaimPlanner, type Usage } from "./claim-planner.ts";
import {
  BLOCKERS,
  type Blocker,
  FAST_MS,
  Fifo,
  type SubscriptionState,
  SubscriptionTable,
} from "./subscription-state.ts";

/** How many claims of one subscription its filter may exclude before it is the turn of the next subscription. */
const MAX_EXCLUDED_IN_TURN = 64;
/** Bytes of payload in flight. As with attempts, a subscription may have as many as are still free. */
const MAX_IN_FLIGHT_BYTES = 64 * 1_024 * 1_024;
/** Nothing is claimed while so many results for each possible attempt, or in all, are not stored. */
const UNSTORED_PER_ATTEMPT = 4;
const MAX_UNSTORED = 4_096;

/** The part of all attempts up to which deliveries are leased as they are made, and how many of one event are. */
const RESERVABLE_PART = 1 / 2;
const MAX_RESERVED = 64;

const NONE: readonly Claim[] = [];

/** A handler's answer that means "too much" or "not now". */
export interface Throttle {
  readonly retryAfterMs: number;
}

/** Capacity that is kept for deliveries that are leased as something else is stored. */
export type Reservation = Pick<RecordClaim, "subscriptions">;

export interface NextClaim {
  readonly claim: Claim;
  readonly sub: SubscriptionState;
}

/**
 * Decides which claim is started next, and when and what to claim. Pure: it has no timer, promise or callback. Its times are
 * those of the monotonic clock.
 *
 * It buffers claims, so that there is always a next one while the store is read for more. Subscriptions that are ready
 * take turns. A claim that was not started within a second is released: its handler has become slow.
 */
export class Scheduler implements Usage {
  readonly maxInFlight: number;
  readonly claims: ClaimPlanner;
  readonly #maxUnstored: number;
  readonly #table: SubscriptionTable;
  /** Subscriptions with buffered claims that were ready when that was checked last. */
  readonly #ring = new Fifo<SubscriptionState>();
  /** How many the filter of the first in the ring has excluded in its turn. */
  #excludedInTurn = 0;
  /** Nothing has happened since there was nothing to start. */
  #isSettled = true;
  readonly #released: Claim[] = [];
  #buffered = 0;
  #bufferedBytes = 0;
  #inFlight = 0;
  #inFlightBytes = 0;
  #unstored = 0;
  /** Deliveries that may be leased as they are made. */
  #reserved = 0;
  /** How many changes of subscriptions there were. */
  #changes = 0;
  /** What events and results that are being stored may lease, with how many changes there were by then. */
  readonly #reservations = new Map<Reservation, number>();
  /** Results that say when a handler may be sent to again: until they are stored, it is not. */
  readonly #throttling = new WeakMap<AttemptResult, SubscriptionState>();
  /** When the buffer is checked for claims that have waited too long. */
  #expiryAtMs = Infinity;
  /** When the first of those that are limited by their rates may start one. */
  #slotAtMs = Infinity;
  #isClosed = false;

  /** @param maxPerSubscription attempts that each subscription may have in flight */
  constructor(maxInFlight: number, maxPerSubscription: number) {
    this.maxInFlight = maxInFlight;
    this.#maxUnstored = Math.min(MAX_UNSTORED, maxInFlight * UNSTORED_PER_ATTEMPT);
    this.#table = new SubscriptionTable(maxPerSubscription);
    this.claims = new ClaimPlanner(this.#table, this);
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  get buffered(): number {
    return this.#buffered;
  }

  /** Payloads of an event for several subscriptions are counted several times. */
  get bufferedBytes(): number {
    return this.#bufferedBytes;
  }

  get isIdle(): boolean {
    return this.#inFlight + this.#unstored + this.#reserved === 0;
  }

  get isBehind(): boolean {
    return this.#unstored >= this.#maxUnstored;
  }

  /** A subscription was changed: no attempt starts any more by what it was. */
  changed(subscription: Subscription): void {
    const sub = this.#table.of(subscription.rowid);
    this.#changes += 1;
    sub.lastChange = this.#changes;
    sub.applySettings(subscription);
    if (!sub.isBlockedBy("stale")) this.#block(sub, "stale");
  }

  /** @param aheadMs how far this clock, the monotonic one, is ahead of the clock of stored times */
  leased(answer: ClaimAnswer, nowMs: number, aheadMs = 0): void {
    this.claims.answered(answer, aheadMs);
    this.#buffer(answer.claims, nowMs);
  }

  /**
   * What an event of the action may lease, for subscriptions that could be sent it at once. Each has capacity reserved for
   * one, until `recorded`. With much under way there is nothing: claims share what is left fairly.
   */
  reserve(action: string, nowMs: number, leaseMs: number): RecordClaim | undefined {
    if (!this.#mayReserve) return undefined;
    const subscriptions: number[] = [];
    for (const sub of this.#table.receivingFrom(action)) {
      if (subscriptions.length >= MAX_RESERVED) break;
      if (sub.reserve(nowMs)) subscriptions.push(sub.subscriptionId);
    }
    return subscriptions.length === 0 ? undefined : this.#reserving({ action, subscriptions, leaseMs });
  }

  /** The same for what comes next in the order of a result that is about to be stored. */
  reserveNext(sub: SubscriptionState, nowMs: number): Reservation | undefined {
    if (!sub.isOrdered || !this.#mayReserve || !sub.reserve(nowMs)) return undefined;
    return this.#reserving({ subscriptions: [sub.subscriptionId] });
  }

  get #mayReserve(): boolean {
    const used = this.#inFlight + this.#buffered + this.#reserved;
    return !this.#isClosed && !this.isBehind && used < this.maxInFlight * RESERVABLE_PART;
  }

  #reserving<T extends Reservation>(reservation: T): T {
    this.#reserved += reservation.subscriptions.length;
    this.#reservations.set(reservation, this.#changes);
    return reservation;
  }

  /**
   * The event or the result is stored, or was refused. What is leased of a subscription that was changed meanwhile goes back.
   */
  recorded(reservation: Reservation, claims: readonly Claim[], nowMs: number): void {
    const changes = this.#reservations.get(reservation);
    this.#reservations.delete(reservation);
    this.#reserved -= reservation.subscriptions.length;
    for (const id of reservation.subscriptions) this.#table.of(id).endReservation();
    this.#buffer(claims, nowMs, changes);
  }

  /** @param changes that were known when they were requested; `rejectsClaims` knows of those since the last claim */
  #buffer(claims: readonly Claim[], nowMs: number, changes = Infinity): void {
    for (const claim of claims) {
      const { subscriptionId, settings } = claim.subscription;
      const sub = this.#table.of(subscriptionId);
      this.#table.receives(sub, claim.event.action);
      if (this.#isClosed || sub.rejectsClaims || sub.lastChange > changes) {
        this.#released.push(claim);
        this.#unstored += 1;
        continue;
      }
      sub.applySettings(settings);
      sub.buffer({ claim, leasedAtMs: nowMs });
      this.#buffered += 1;
      this.#bufferedBytes += bytesOf(claim);
      this.#offer(sub);
    }
  }

  /** The next claim that may be started. It stays the next one until `start`, `exclude` or `awaitFilter`. */
  next(nowMs: number): NextClaim | undefined {
    this.#checkTimes(nowMs);
    if (this.#isSettled || this.#inFlight >= this.maxInFlight) return undefined;
    const freeBytes = MAX_IN_FLIGHT_BYTES - this.#inFlightBytes;
    for (let passed = 0; passed < this.#ring.size;) {
      const sub = this.#ring.head!;
      const { head } = sub;
      const readiness = sub.readiness(nowMs);
      if (readiness === "limited") this.#slotAtMs = Math.min(this.#slotAtMs, sub.nextSlotMs(nowMs));
      if (head === undefined || readiness !== "ready") this.#endTurn(false);
      else if (nowMs - head.leasedAtMs > FAST_MS) this.#release(sub);
      else if (sub.canStart(this.maxInFlight - this.#inFlight, freeBytes, nowMs)) {
        return { claim: head.claim, sub };
      } else {
        // It leaves attempts or memory to others, and is checked again when the next attempt ends.
        this.#endTurn(true);
        passed += 1;
      }
    }
    this.#isSettled = true;
    return undefined;
  }

  /** The next claim is being started. Returns the bytes of its payload, for `ended`. */
  start({ claim, sub }: NextClaim, nowMs: number): number {
    const bytes = bytesOf(claim);
    this.#take(sub);
    sub.started(nowMs, bytes);
    this.#inFlight += 1;
    this.#inFlightBytes += bytes;
    // What was leased for the filter would wait for an answer that may take long.
    if (sub.filterStalled(nowMs)) this.#release(sub);
    this.#endTurn(true);
    return bytes;
  }

  /** The filter of the next claim has excluded it. It has a result without an attempt. */
  exclude({ sub }: NextClaim): void {
    this.#take(sub);
    sub.excluded();
    this.#unstored += 1;
    this.claims.freed(sub);
    this.#excludedInTurn += 1;
    if (this.#excludedInTurn >= MAX_EXCLUDED_IN_TURN) this.#endTurn(true);
  }

  /** The next claim waits for its filter; the other subscriptions go on. To be followed by `filterReady`. */
  awaitFilter({ sub }: NextClaim): void {
    this.#block(sub, "filter");
    this.#endTurn(false);
  }

  filterReady(sub: SubscriptionState): void {
    sub.unblock("filter");
    this.#freed(sub);
  }

  /**
   * An attempt has ended.
   * @param bytes as `start` answered them
   * @param aheadMs see `leased`
   * @returns the result as it is to be stored
   */
  ended(
    sub: SubscriptionState,
    bytes: number,
    result: AttemptResult,
    throttle: Throttle | undefined,
    nowMs: number,
    aheadMs = 0,
  ): AttemptResult {
    const { durationMs, statusCode, errorCode, ending } = result;
    const startedMs = nowMs - durationMs;
    let stored = result;
    this.#leave(bytes);
    if (throttle !== undefined) {
      const gapMs = sub.throttled(nowMs, durationMs, startedMs, bytes);
      const waitMs = Math.max(throttle.retryAfterMs, gapMs);
      if (waitMs > 0) {
        stored = { ...result, slowUntilMs: nowMs - aheadMs + waitMs };
        this.#block(sub, "throttle");
        this.#throttling.set(stored, sub);
      }
    } else if (statusCode !== undefined) sub.answered(nowMs, durationMs, statusCode >= 500, bytes);
    else if (errorCode === "interrupted") sub.aborted(bytes);
    else sub.unanswered(nowMs, startedMs, bytes);
    // Its subscription is deactivated by that.
    if (ending === "gone") this.#release(sub);
    this.#unstored += 1;
    this.#freed(sub);
    return stored;
  }

  /** An attempt broke off without a result: its lease will end. */
  broken(sub: SubscriptionState, bytes: number): void {
    this.#leave(bytes);
    sub.aborted(bytes);
    this.#freed(sub);
  }

  /**
   * @param outcome what the store made of the result; `undefined` when it was given up
   * @param aheadMs see `leased`
   */
  stored(result: AttemptResult, outcome: FinishOutcome | undefined, aheadMs = 0): void {
    const { slowUntilMs } = result;
    this.#unstored -= 1;
    if (outcome?.kind === "stored" && outcome.deactivated !== undefined) {
      this.#release(this.#table.of(outcome.deactivated.subscriptionId));
    }
    const throttled = this.#throttling.get(result);
    if (throttled !== undefined) {
      this.#throttling.delete(result);
      throttled.unblock("throttle");
      this.#freed(throttled);
    }
    if (outcome?.kind === "stored" && outcome.isNextDue === true) this.claims.dueAt();
    if (slowUntilMs !== undefined) this.claims.dueAt(slowUntilMs + aheadMs);
    if (outcome?.kind === "stored" && outcome.state === "pending") {
      const { retryAtMs } = outcome;
      this.claims.dueAt(retryAtMs === undefined ? undefined : retryAtMs + aheadMs);
    }
    this.claims.stored();
  }

  /** Claims that go back to the store as if they had never been leased. Each has a result without an attempt. */
  takeReleased(): readonly Claim[] {
    // Nearly always empty, and called for each attempt.
    return this.#released.length === 0 ? NONE : this.#released.splice(0);
  }

  /** When there may be something to do even if nothing happens; `Infinity` for never. */
  nextChangeAtMs(nowMs: number): number {
    if (this.#isClosed) return Infinity;
    if (this.#buffered === 0) this.#expiryAtMs = Infinity;
    else if (this.#expiryAtMs === Infinity) this.#expiryAtMs = nowMs + FAST_MS;
    return Math.min(this.#expiryAtMs, this.#slotAtMs, this.claims.nextAtMs);
  }

  /** Releases everything, also what is still to come. */
  close(): void {
    this.#isClosed = true;
    for (const sub of this.#table) this.#release(sub);
  }

  #checkTimes(nowMs: number): void {
    if (nowMs >= this.#expiryAtMs) {
      this.#expiryAtMs = Infinity;
      for (const sub of this.#table) {
        if (sub.head !== undefined && nowMs - sub.head.leasedAtMs > FAST_MS) this.#release(sub);
      }
      this.#isSettled = false;
    }
    if (nowMs >= this.#slotAtMs) {
      this.#slotAtMs = Infinity;
      // Also one whose rate limit was removed meanwhile.
      for (const sub of this.#table) this.#offer(sub);
    }
  }

  #offer(sub: SubscriptionState): void {
    if (sub.buffered === 0) return;
    this.#isSettled = false;
    if (sub.isInRing) return;
    sub.isInRing = true;
    this.#ring.push(sub);
  }

  /** Something has changed for it: it may start one, or lease more. */
  #freed(sub: SubscriptionState): void {
    this.#offer(sub);
    this.#isSettled = false;
    this.claims.freed(sub);
  }

  /** The first in the ring goes to the end of it, or leaves it until something changes. */
  #endTurn(staysInRing: boolean): void {
    this.#excludedInTurn = 0;
    const sub = this.#ring.shift();
    if (sub === undefined) return;
    sub.isInRing = staysInRing && sub.buffered > 0;
    if (sub.isInRing) this.#ring.push(sub);
  }

  #block(sub: SubscriptionState, blocker: Blocker): void {
    sub.block(blocker);
    if (BLOCKERS[blocker].releases === "all") this.#release(sub);
  }

  #release(sub: SubscriptionState): void {
    if (sub.buffered > 0) sub.hasBacklog = true;
    while (sub.buffered > 0) {
      this.#released.push(this.#take(sub));
      this.#unstored += 1;
    }
  }

  #take(sub: SubscriptionState): Claim {
    const { claim } = sub.shift()!;
    this.#buffered -= 1;
    this.#bufferedBytes -= bytesOf(claim);
    return claim;
  }

  #leave(bytes: number): void {
    this.#inFlight -= 1;
    this.#inFlightBytes -= bytes;
  }
}

function bytesOf({ event }: Claim): number {
  return event.payload?.byteLength ?? 0;
}
