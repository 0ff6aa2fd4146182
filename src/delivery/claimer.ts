import { Alarm, Backoff, type Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { ClaimAnswer, ClaimRequest, DeliveryQueue, Share } from "../store/queue.ts";
import type { InFlight } from "./in-flight.ts";
import {
  FIRST_WINDOW,
  freeOf,
  type Load,
  mostOfSlow,
  QUICK,
  roomOfTier,
  SLOW,
  type Tier,
  UNKNOWN,
} from "./limits.ts";
import type { LocalQueue } from "./scheduler.ts";
import { type Flow, type Flows, QUICK_MS } from "./subscription-state.ts";

/** Most deliveries of one claim: so many take the store's thread 2 ms or so, in which it does nothing else. */
const MOST_CLAIMED = 256;
/** Most deliveries leased and not begun. */
const MOST_WAITING = 1_024;

type ClaimPlan = Pick<ClaimRequest, "tiers" | "shares" | "others">;

/** What may be claimed now: what can be begun at once, and some ahead for the quick ones. Notes it in the flows. */
function planClaim(
  flows: Iterable<Flow>,
  { nowMs, most, underWay }: { nowMs: number; most: number; underWay: number },
): ClaimPlan {
  const tierOf = new Map<Flow, Tier>();
  const leased = { [QUICK]: 0, [UNKNOWN]: 0, [SLOW]: 0 };
  let waiting = 0;
  for (const flow of flows) {
    flow.asked();
    const tier = flow.tier(nowMs);
    tierOf.set(flow, tier);
    leased[tier] += flow.leased;
    waiting += flow.waiting;
  }
  const load: Load = { most, underWay, unknown: leased[UNKNOWN], slow: leased[SLOW] };
  const rooms = {
    [QUICK]: Math.max(0, Math.min(MOST_CLAIMED, freeOf(load) + MOST_WAITING - waiting)),
    [UNKNOWN]: roomOfTier(UNKNOWN, load),
    [SLOW]: roomOfTier(SLOW, load),
  };
  const shares = new Map<number, Share>();
  for (const [flow, tier] of tierOf) {
    const wanted = tier === SLOW ? mostOfSlow(flow.window, rooms[SLOW]) : flow.window + flow.ahead(nowMs);
    const mostLeased = wanted + flow.toFilter;
    flow.planned = { tier, mostLeased };
    const free = flow.isBusy ? 0 : Math.max(0, mostLeased - flow.leased);
    const room = Math.min(free, flow.roomAtRate(nowMs) + flow.toFilter);
    shares.set(flow.subscriptionId, { leased: flow.leased, room, tier });
  }
  const tiers = [
    { most: rooms[QUICK], isLatestFirst: false },
    // What came last goes to a handler that was well a moment ago, rather than to one with a backlog.
    { most: rooms[UNKNOWN], isLatestFirst: true },
    { most: rooms[SLOW], isLatestFirst: false },
  ];
  return { tiers, shares, others: { leased: 0, room: FIRST_WINDOW, tier: UNKNOWN } };
}

/** Filled up again when less than this is left, so that a claim is a large one and comes before the queue is empty. */
const LOW = MOST_WAITING / 4;
/** Most bytes of payload in one claim, and among what is leased and not begun. */
const CLAIM_BYTES = 8 * 1024 * 1024;
const WAITING_BYTES = 32 * 1024 * 1024;
/** A server that reads nothing due for so long does not do its work. */
const LONG_FAILING_MS = 10_000;
/** While there is no room for subscriptions of which nothing is known, it is looked at this often. */
const UNKNOWN_LOOK_MS = QUICK_MS / 4;
/** For subscriptions that are kept to a rate it is looked no sooner again, as one look leases for longer than that. */
const PACED_LOOK_MS = 20;

interface ClaimerParts {
  readonly store: Pick<DeliveryQueue, "claim">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly leaseMs: number;
  /** Most attempts under way. */
  readonly most: number;
  readonly flows: Flows;
  readonly queue: LocalQueue;
  readonly inFlight: InFlight;
  /** Nothing is claimed while this is so; whoever ends it calls `look`. */
  readonly isHeldBack: () => boolean;
}

/**
 * Looks for due deliveries (`claim`) when something may be due that was not, and when there is room again for what was
 * left behind; never on the off chance.
 */
export class Claimer {
  readonly #parts: ClaimerParts;
  readonly #backoff: Backoff;
  #isRunning = false;
  #looking: Promise<void> | undefined;
  #lookAgain = false;
  /** Tiers of which more may be due than the last claim had room for. */
  #limitedTiers: readonly number[] = [];
  /** There was no room for anything. */
  #wasFull = false;
  /** Places came back while a look was under way. */
  #hasFreed = false;
  #failingSinceMs: number | undefined;
  readonly #alarm: Alarm;
  readonly #stopping = new AbortController();

  constructor(parts: ClaimerParts) {
    this.#parts = parts;
    this.#backoff = new Backoff(parts.clock);
    this.#alarm = new Alarm(parts.clock, () => this.look());
  }

  get isFailing(): boolean {
    const sinceMs = this.#failingSinceMs;
    return sinceMs !== undefined && this.#parts.clock.now() - sinceMs >= LONG_FAILING_MS;
  }

  start(): void {
    this.#isRunning = true;
    this.look();
  }

  /** Looks now or, while a look is under way, right after it. */
  look(): void {
    if (!this.#isRunning) return;
    if (this.#looking === undefined) this.#looking = this.#lookUntilDone();
    else this.#lookAgain = true;
  }

  /** An attempt has ended: looks if there is room again for what was left behind. */
  ended(flow: Flow): void {
    const isUnproven = flow.planned.tier !== QUICK;
    if (this.#looking !== undefined) this.#hasFreed ||= isUnproven;
    else if ((isUnproven && this.#leftUnproven) || this.#isLow || flow.isHungry(this.#parts.clock.now())) {
      this.look();
    } else this.#lookAtItsRate(flow);
  }

  /** Looks at that time unless it does so earlier anyway. */
  lookAt(atMs: number): void {
    if (this.#isRunning) this.#alarm.at(atMs);
  }

  /** Looks if the timer for what comes due next is late, as a clock that was set forward makes it. */
  lookIfLate(): void {
    if (this.#alarm.isLate) this.look();
  }

  /** One claim; answers whether there was room for any. Rejects with the store's error. */
  async claim(): Promise<boolean> {
    const { store, clock, flows, queue, inFlight, most, leaseMs, isHeldBack } = this.#parts;
    const nowMs = clock.now();
    const plan = planClaim(flows, { nowMs, most, underWay: inFlight.size });
    const room = plan.tiers[QUICK]?.most ?? 0;
    this.#hasFreed = false;
    this.#wasFull = room === 0 || inFlight.size >= most || queue.payloadBytes >= WAITING_BYTES;
    if (room === 0 || queue.payloadBytes >= WAITING_BYTES || isHeldBack()) return false;
    const answer = await store.claim({ ...plan, nowMs, leaseMs, maxPayloadBytes: CLAIM_BYTES });
    this.#limitedTiers = answer.limitedTiers;
    const claimed = this.#note(plan, answer);
    queue.add(answer.claims);
    if (answer.nextDueAtMs !== undefined) this.lookAt(answer.nextDueAtMs);
    for (const flow of flows) this.#lookAtItsRate(flow);
    // Others filled the claim before it was the turn of these, which have room of their own.
    this.#lookAgain ||=
      answer.claims.length > 0 &&
      answer.limitedTiers.some((tier) => tier !== QUICK && claimed[tier]! < plan.tiers[tier]!.most);
    // Those that are silent will not count as unknown any more by then.
    if (answer.limitedTiers.includes(UNKNOWN)) this.lookAt(nowMs + UNKNOWN_LOOK_MS);
    return true;
  }

  /** Takes on nothing new; what is under way may still bring claims. */
  stop(): void {
    this.#isRunning = false;
    this.#alarm.clear();
    this.#stopping.abort();
  }

  /** Resolves when no look is under way. */
  async idle(): Promise<void> {
    await this.#looking;
  }

  async #lookUntilDone(): Promise<void> {
    let goesOn = true;
    while (goesOn && this.#isRunning) {
      // Whatever calls for a look at this moment is in it.
      await Promise.resolve();
      this.#lookAgain = false;
      try {
        const hadRoom = await this.claim();
        if (this.#backoff.isFailing) this.#parts.logger.info({}, "Deliveries go on.");
        this.#backoff.reset();
        this.#failingSinceMs = undefined;
        // Without room there is nothing to go on with until an attempt has ended, or results are stored.
        goesOn = hadRoom && (this.#lookAgain || this.#hasRoomAgain());
      } catch (error) {
        if (this.#isRunning) await this.#waitForStore(error);
      }
    }
    // In the same turn as the last look at `#lookAgain`, so that no call of `look` falls between.
    this.#looking = undefined;
    this.#parts.flows.tidy(this.#parts.clock.now());
  }

  /** Whether there is room by now for what the claim that has just come left behind. */
  #hasRoomAgain(): boolean {
    if ((this.#hasFreed && this.#leftUnproven) || this.#isLow) return true;
    const nowMs = this.#parts.clock.now();
    for (const flow of this.#parts.flows) if (flow.isHungry(nowMs)) return true;
    return false;
  }

  get #leftUnproven(): boolean {
    return this.#limitedTiers.some((tier) => tier !== QUICK);
  }

  /** Whether more was left of quick subscriptions, or of all, and little of what was taken is still there. */
  get #isLow(): boolean {
    const { queue, inFlight, most } = this.#parts;
    const hasLeft = this.#wasFull || this.#limitedTiers.includes(QUICK);
    return hasLeft && queue.size < LOW && inFlight.size < most && queue.payloadBytes < WAITING_BYTES;
  }

  /** If its rate is all that keeps it from more: looks again when that has room. */
  #lookAtItsRate(flow: Flow): void {
    if (flow.pacer === undefined) return;
    const nowMs = this.#parts.clock.now();
    const atMs = flow.nextRoomAtMs(nowMs);
    if (atMs !== undefined) this.lookAt(Math.max(atMs, nowMs + PACED_LOOK_MS));
  }

  /** Of each subscription, whether it had room for all that may be due. Answers how many were claimed of each tier. */
  #note({ tiers, shares, others }: ClaimPlan, { claims }: ClaimAnswer): readonly number[] {
    const { flows } = this.#parts;
    const claimed = new Map<Flow, number>();
    for (const { subscription } of claims) {
      const flow = flows.of(subscription.subscriptionId);
      claimed.set(flow, (claimed.get(flow) ?? 0) + 1);
    }
    for (const flow of flows) {
      const planned = shares.get(flow.subscriptionId);
      if (planned === undefined) flow.planned = { tier: UNKNOWN, mostLeased: others.room };
      flow.hasMore = (claimed.get(flow) ?? 0) >= (planned ?? others).room;
    }
    const ofTier = tiers.map(() => 0);
    for (const [{ planned }, count] of claimed) ofTier[planned.tier]! += count;
    return ofTier;
  }

  async #waitForStore(error: unknown): Promise<void> {
    this.#failingSinceMs ??= this.#parts.clock.now();
    if (!this.#backoff.isFailing) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#parts.logger.warn({ error: reason }, "Due deliveries cannot be read; trying on.");
    }
    await this.#backoff.wait(this.#stopping.signal);
  }
}

interface LeaseWatchParts {
  readonly store: Pick<DeliveryQueue, "releaseExpired">;
  readonly clock: Clock;
  readonly logger: Logger;
  readonly everyMs: number;
  /** While results wait long to be stored, leases that seem to have ended may be their own, and are let be. */
  readonly isHolding: () => boolean;
  /** Called after each round, with the number of deliveries that are due again. */
  readonly onRound: (released: number) => void;
}

/**
 * Makes deliveries due again whose lease ended: whoever sent them has died or lost touch. The one thing the engine asks
 * for at a steady pace, as nothing announces it.
 */
export class LeaseWatch {
  readonly #parts: LeaseWatchParts;
  #cancel: () => void = () => {};
  #isStopped = false;

  constructor(parts: LeaseWatchParts) {
    this.#parts = parts;
  }

  /** Looks at once, then every `everyMs`. */
  start(): void {
    void this.#round();
  }

  stop(): void {
    this.#isStopped = true;
    this.#cancel();
  }

  async #round(): Promise<void> {
    const { store, clock, logger, everyMs, isHolding, onRound } = this.#parts;
    try {
      const released = isHolding() ? 0 : await store.releaseExpired(clock.now());
      if (released > 0) {
        logger.warn({ deliveries: released }, "Deliveries whose attempt never ended are due again.");
      }
      onRound(released);
    } catch {
      // The claim that fails for the same reason says so.
    }
    if (!this.#isStopped) this.#cancel = clock.setTimer(() => void this.#round(), everyMs);
  }
}
