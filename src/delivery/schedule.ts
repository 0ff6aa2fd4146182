import { isThrottle } from "../domain/retry.ts";
import type { Subscription } from "../domain/subscription.ts";
import type {
  AttemptResult,
  Claim,
  ClaimAnswer,
  ClaimRequest,
  FinishOutcome,
  RecordClaim,
} from "../store/queue.ts";
import { ClaimPlanner, Lanes, SHARES } from "./claim-planner.ts";
import { FAST_MS, type Item, ItemCounts, type ItemState, type Lane } from "./lane.ts";

/** Bytes of payload under way. As with attempts, a lane may have as many as are still free. */
const MAX_SENDING_BYTES = 64 * 1_024 * 1_024;
/** How many deliveries of one event are leased as they are made. */
const MAX_RESERVED = 64;

/**
 * The life of a delivery in hand: it is queued, its attempt is under way, its result is being stored, and it is gone. What comes for
 * a lane that was changed meanwhile is stored as never started at once.
 */
export const LIFE = {
  queued: { started: "sending", excluded: "storing", dropped: "storing" },
  sending: { ended: "storing", excluded: "storing", broken: "gone" },
  storing: { stored: "gone" },
  gone: {},
} as const satisfies Record<ItemState, Readonly<Record<string, ItemState>>>;
type ItemEvent = { [S in ItemState]: keyof (typeof LIFE)[S] }[ItemState];

/** Capacity that is kept for deliveries that are leased as something else is stored. */
type LeaseReservation = Pick<RecordClaim, "subscriptions">;

/** What is to be done next. */
type ScheduleStep =
  /** Begin an attempt: to be followed by `start` or `exclude`. */
  | { readonly do: "start"; readonly item: Item; readonly claim: Claim }
  /** Give the delivery back to the store, as if it had never been leased: to be followed by `stored`. */
  | { readonly do: "drop"; readonly item: Item; readonly claim: Claim }
  /** Ask the store for more: to be followed by `request`. */
  | { readonly do: "claim" }
  /** Nothing, until something happens or that time has come. */
  | { readonly do: "wait"; readonly untilMs: number };

/**
 * Decides what is done with the deliveries in hand, and when more are claimed. Pure: it has no timer, promise or callback. Its
 * times are those of the monotonic clock. Its methods take in what happens, and `step` says what to do next.
 *
 * It holds items, so that there is always a next one while the store is read for more. Lanes that are ready take turns. An item
 * that was not started within a second is dropped: its handler has become slow.
 */
export class Schedule {
  readonly #maxInFlight: number;
  readonly counts = new ItemCounts();
  readonly #lanes: Lanes;
  readonly #claims: ClaimPlanner;
  /** Lanes with items that were ready when that was checked last. */
  readonly #ring: Lane[] = [];
  /** Nothing has happened since there was nothing to start. */
  #isSettled = true;
  readonly #dropped: (ScheduleStep & { readonly do: "drop" })[] = [];
  /** Deliveries that may be leased as they are made. */
  #reserved = 0;
  /** How many changes of subscriptions there were. What is leased is outdated if its lane was changed since that was asked for. */
  #changes = 0;
  /** How many there were by the claim in progress. */
  #claimAsOf = 0;
  /** What events and results that are being stored may lease, with how many changes there were by then. */
  readonly #reservations = new Map<LeaseReservation, number>();
  /** When it is checked which items have been queued for too long. */
  #expiryAtMs = Infinity;
  /** When the first of those that are paced by their rates may start one. */
  #slotAtMs = Infinity;
  #isClosed = false;

  /** @param maxPerLane attempts that each subscription may have under way */
  constructor(maxInFlight: number, maxPerLane: number) {
    this.#maxInFlight = maxInFlight;
    this.#lanes = new Lanes(maxPerLane);
    this.#claims = new ClaimPlanner(this.#lanes, maxInFlight, this.counts);
  }

  /** Whether nothing is under way or being stored. */
  get isIdle(): boolean {
    const { sending, storing } = this.counts.items;
    return sending + storing + this.#reserved === 0;
  }

  /** @param mayStart whether attempts may begin; the rest goes on without them */
  step(nowMs: number, mayStart = true): ScheduleStep {
    this.#checkTimes(nowMs);
    const item = mayStart ? this.#next(nowMs) : undefined;
    if (item !== undefined) return { do: "start", item, claim: item.claim! };
    const dropped = this.#dropped.shift();
    if (dropped !== undefined) return dropped;
    if (!this.#isClosed && this.#claims.begins(nowMs)) return { do: "claim" };
    return { do: "wait", untilMs: this.#nextChangeAtMs(nowMs) };
  }

  /** Something may be due now. */
  due(): void {
    this.#claims.dueAt();
  }

  /** A subscription was changed: no attempt starts any more by what it was, and older deliveries may be due again. */
  changed(subscription: Subscription): void {
    this.#forget(subscription.rowid);
    this.#lanes.of(subscription.rowid).applySettings(subscription);
  }

  /** The same for subscriptions that others may have changed, whose settings come with the next claims. */
  changedByOthers(subscriptions: readonly number[]): void {
    for (const id of subscriptions) this.#forget(id);
    if (subscriptions.length > 0) this.#claims.dueAt();
  }

  /**
   * What to claim; `undefined` without capacity. To be followed by `claimed`.
   * @param aheadMs see `claimed`
   */
  request(nowMs: number, leaseMs: number, aheadMs = 0): ClaimRequest | undefined {
    this.#claimAsOf = this.#changes;
    return this.#claims.request(nowMs, leaseMs, aheadMs);
  }

  /**
   * @param answer `undefined` where the claim failed
   * @param aheadMs how far this clock, the monotonic one, is ahead of the clock of stored times
   */
  claimed(answer: ClaimAnswer | undefined, nowMs: number, aheadMs = 0): void {
    if (answer === undefined) return this.#claims.failed();
    this.#claims.answered(answer, this.#claimAsOf, aheadMs);
    this.#queue(answer.claims, this.#claimAsOf, nowMs);
  }

  /**
   * What an event of the action may lease, for subscriptions that could be sent it at once. Each has capacity reserved for
   * one, until `recorded`. With much under way there is nothing: claims share what is left fairly.
   */
  reserve(action: string, nowMs: number, leaseMs: number): RecordClaim | undefined {
    if (!this.#mayReserve) return undefined;
    const subscriptions: number[] = [];
    for (const lane of this.#lanes.receivingFrom(action)) {
      if (subscriptions.length >= MAX_RESERVED) break;
      if (lane.reserve(nowMs)) subscriptions.push(lane.subscriptionId);
    }
    return subscriptions.length === 0 ? undefined : this.#reserving({ subscriptions, leaseMs });
  }

  /** Reserves capacity for what comes next in the order of a result that is about to be stored. */
  reserveNext(lane: Lane, nowMs: number): LeaseReservation | undefined {
    if (!lane.isOrdered || !this.#mayReserve || !lane.reserve(nowMs)) return undefined;
    return this.#reserving({ subscriptions: [lane.subscriptionId] });
  }

  /** The event or the result is stored, or was refused. */
  recorded(reservation: LeaseReservation, claims: readonly Claim[], nowMs: number): void {
    const asOf = this.#reservations.get(reservation) ?? 0;
    this.#reservations.delete(reservation);
    this.#reserved -= reservation.subscriptions.length;
    for (const id of reservation.subscriptions) this.#lanes.of(id).endReservation();
    this.#queue(claims, asOf, nowMs);
  }

  /** The attempt of the next item begins, or its filter is asked first. */
  start(item: Item, nowMs: number): void {
    const { lane } = item;
    lane.started(nowMs);
    this.#move(item, "started");
    this.#endTurn(true);
  }

  /** The filter has excluded the next item, or one that was started for it; or the engine stops before that one is sent. */
  exclude(item: Item): void {
    const { lane } = item;
    if (item.state === "queued") this.#endTurn(true);
    this.#move(item, "excluded");
    lane.excluded();
    this.#freed(lane);
  }

  /**
   * An attempt has ended.
   * @param aheadMs see `claimed`
   * @returns the result as it is to be stored
   */
  ended(item: Item, result: AttemptResult, nowMs: number, aheadMs = 0): AttemptResult {
    const { lane } = item;
    const { durationMs, statusCode, errorCode, ending, retryAfterMs = 0 } = result;
    const startedMs = nowMs - durationMs;
    let stored = result;
    if (ending === "failed" && statusCode !== undefined && isThrottle(statusCode)) {
      const gapMs = lane.throttled(nowMs, durationMs, startedMs);
      const waitMs = Math.max(retryAfterMs, gapMs);
      if (waitMs > 0) {
        stored = { ...result, slowUntilMs: nowMs - aheadMs + waitMs };
        item.pausedUntilMs = nowMs + waitMs;
        lane.settling += 1;
        this.#dropAll(lane);
      }
    } else if (statusCode !== undefined) lane.answered(nowMs, durationMs, statusCode >= 500);
    else if (errorCode !== "interrupted") lane.unanswered(nowMs, startedMs);
    this.#move(item, "ended");
    // Its subscription is deactivated by that.
    if (ending === "gone") this.#dropAll(lane);
    this.#freed(lane);
    return stored;
  }

  /** An attempt broke off without a result: its lease will end. */
  broke(item: Item): void {
    this.#move(item, "broken");
    this.#freed(item.lane);
  }

  /**
   * @param outcome what the store made of the result; `undefined` when it was given up
   * @param aheadMs see `claimed`
   */
  stored(item: Item, outcome: FinishOutcome | undefined, aheadMs = 0): void {
    const { lane, pausedUntilMs } = item;
    this.#move(item, "stored");
    if (pausedUntilMs !== undefined) {
      lane.settling -= 1;
      this.#freed(lane);
      this.#claims.dueAt(pausedUntilMs);
    }
    if (outcome?.kind !== "stored") return;
    const { deactivated, isNextDue, state, retryAtMs } = outcome;
    if (deactivated !== undefined) this.#dropAll(this.#lanes.of(deactivated.subscriptionId));
    if (isNextDue === true) this.#claims.dueAt();
    if (state === "pending") this.#claims.dueAt(retryAtMs === undefined ? undefined : retryAtMs + aheadMs);
  }

  /** Drops everything, also what is still to come. */
  close(): void {
    this.#isClosed = true;
    for (const lane of this.#lanes) this.#dropAll(lane);
  }

  /** The only place where an item changes, and with it what is counted. */
  #move(item: Item, event: ItemEvent): void {
    const { lane, state, bytes } = item;
    const transitions: Partial<Record<ItemEvent, ItemState>> = LIFE[state];
    const next = transitions[event];
    if (next === undefined) throw new Error(`An item that is ${state} was ${event}.`);
    if (state === "queued") lane.queued.shift();
    item.state = next;
    lane.counts.move(state, next, bytes);
    this.counts.move(state, next, bytes);
    item.claim = undefined;
  }

  /** No attempt starts any more by what was leased of the subscription until now. */
  #forget(subscription: number): void {
    const lane = this.#lanes.of(subscription);
    this.#changes += 1;
    lane.changedAt = this.#changes;
    lane.hasBacklog = true;
    this.#dropAll(lane);
  }

  #queue(claims: readonly Claim[], asOf: number, nowMs: number): void {
    for (const claim of claims) {
      const { event, subscription } = claim;
      const lane = this.#lanes.of(subscription.subscriptionId);
      this.#lanes.receives(lane, event.action);
      const isOutdated = this.#isClosed || lane.settling > 0 || lane.changedAt > asOf;
      const state = isOutdated ? "storing" : "queued";
      const bytes = event.payload?.byteLength ?? 0;
      const item: Item = { lane, claim: isOutdated ? undefined : claim, bytes, leasedAtMs: nowMs, state };
      lane.counts.add(state, bytes);
      this.counts.add(state, bytes);
      if (isOutdated) this.#dropped.push({ do: "drop", item, claim });
      else {
        lane.applySettings(subscription.settings);
        lane.queued.push(item);
        this.#offer(lane);
      }
    }
  }

  #dropAll(lane: Lane): void {
    for (let [item] = lane.queued; item !== undefined; [item] = lane.queued) {
      const claim = item.claim!;
      lane.hasBacklog = true;
      this.#move(item, "dropped");
      this.#dropped.push({ do: "drop", item, claim });
    }
  }

  /** The item that may be started. It stays the next one until `start` or `exclude`. */
  #next(nowMs: number): Item | undefined {
    const { sending } = this.counts.items;
    if (this.#isSettled || sending >= this.#maxInFlight) return undefined;
    const freeBytes = MAX_SENDING_BYTES - this.counts.bytes.sending;
    for (let passed = 0; passed < this.#ring.length;) {
      const lane = this.#ring[0]!;
      const [head] = lane.queued;
      const state = lane.state(nowMs);
      if (state === "paced") this.#slotAtMs = Math.min(this.#slotAtMs, lane.nextSlotMs(nowMs));
      if (head === undefined || state !== "ready") this.#endTurn(false);
      else if (nowMs - head.leasedAtMs > FAST_MS) this.#dropAll(lane);
      else if (lane.canStart(this.#maxInFlight - sending, freeBytes, nowMs)) return head;
      else {
        // It leaves attempts or memory to others, and is checked again when the next attempt ends.
        this.#endTurn(true);
        passed += 1;
      }
    }
    this.#isSettled = true;
    return undefined;
  }

  get #mayReserve(): boolean {
    const { queued, sending } = this.counts.items;
    const isFree = queued + sending + this.#reserved < this.#maxInFlight * SHARES.reserved;
    return isFree && !this.#isClosed && !this.#claims.isBehind;
  }

  #reserving<T extends LeaseReservation>(reservation: T): T {
    this.#reserved += reservation.subscriptions.length;
    this.#reservations.set(reservation, this.#changes);
    return reservation;
  }

  #nextChangeAtMs(nowMs: number): number {
    if (this.#isClosed) return Infinity;
    if (this.counts.items.queued === 0) this.#expiryAtMs = Infinity;
    else if (this.#expiryAtMs === Infinity) this.#expiryAtMs = nowMs + FAST_MS;
    return Math.min(this.#expiryAtMs, this.#slotAtMs, this.#claims.nextAtMs);
  }

  #checkTimes(nowMs: number): void {
    if (nowMs >= this.#expiryAtMs) {
      this.#expiryAtMs = Infinity;
      for (const lane of this.#lanes) {
        const [head] = lane.queued;
        if (head !== undefined && nowMs - head.leasedAtMs > FAST_MS) this.#dropAll(lane);
      }
      this.#isSettled = false;
    }
    if (nowMs >= this.#slotAtMs) {
      this.#slotAtMs = Infinity;
      // A lane whose rate limit was removed meanwhile is offered, too.
      for (const lane of this.#lanes) this.#offer(lane);
    }
  }

  #offer(lane: Lane): void {
    if (lane.queued.length === 0) return;
    this.#isSettled = false;
    if (lane.isInRing) return;
    lane.isInRing = true;
    this.#ring.push(lane);
  }

  /** Something has changed for it: it may start one, or lease more. */
  #freed(lane: Lane): void {
    this.#offer(lane);
    this.#isSettled = false;
    this.#claims.freed(lane);
  }

  /** The first in the ring goes to the end of it, or leaves it until something changes. */
  #endTurn(staysInRing: boolean): void {
    const lane = this.#ring.shift();
    if (lane === undefined) return;
    lane.isInRing = staysInRing && lane.queued.length > 0;
    if (lane.isInRing) this.#ring.push(lane);
  }
}
