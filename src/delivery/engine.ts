import type { DeliveryConfig } from "../config/schema.ts";
import type { Health } from "../domain/operations.ts";
import { SETTINGS_LIMITS } from "../domain/subscription-settings.ts";
import type { Subscription } from "../domain/subscription.ts";
import { DeliveryCounts } from "../metrics/counters.ts";
import { Deadline, type Random } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import { eventLoop } from "../runtime/yielding.ts";
import type { OffThreadValidator } from "../schema/validate/compile.ts";
import type { AttemptResult, Claim, DeliveryQueue } from "../store/queue.ts";
import { Attempts, type Refusal, withoutAttempt } from "./attempt.ts";
import { Claimer, LeaseWatch } from "./claimer.ts";
import { Finisher } from "./completer.ts";
import { Filters } from "./filters.ts";
import { InFlight, type Interruptible, type UnderWay } from "./in-flight.ts";
import { capacityOf, ownMeans } from "./limits.ts";
import { LocalQueue } from "./scheduler.ts";
import { createGuardedSender, type GuardedSenderParts, type Sender } from "./sender.ts";
import { type Flow, Flows, Slowing, TurnTaking } from "./subscription-state.ts";

/** Delivers what is due for as long as it runs. */
export interface Engine {
  /** Resolves when it runs; a second start changes nothing. */
  start(): Promise<void>;
  /**
   * Takes on nothing new, waits up to `graceMs` for attempts under way, then cuts them short and hands their deliveries
   * back. Resolves when nothing is under way any more and what ended is stored. Calling again is safe and can only
   * shorten the grace.
   */
  stop(graceMs: number): Promise<void>;
  /**
   * Claims once, and resolves when those attempts have ended and are stored; for tests and for commands that act on a
   * data folder by themselves. Rejects with the store's error. While the engine runs this is left to it.
   */
  runOnce(): Promise<void>;
  /**
   * Tells that something may be due now. Cheap; does nothing unless it runs.
   * @param changed a subscription as it is after a change: no attempt begins any more by what it was before
   */
  wake(changed?: Subscription): void;
  state(): Health["engine"];
}

export type EngineParts = RunParts;

export function createEngine(parts: EngineParts): Engine {
  let current: Run | undefined;
  // Starting and stopping happen one after the other, in the order they were asked for.
  let last: Promise<void> = Promise.resolve();
  const inTurn = (step: () => Promise<void>): Promise<void> => {
    const turn = last.then(step);
    last = turn.catch(() => {});
    return turn;
  };

  return {
    start: () =>
      inTurn(async () => {
        if (current !== undefined) return;
        current = new Run(parts);
        current.begin();
      }),
    stop(graceMs) {
      // What runs begins to stop now, or hears of a shorter grace now; only the waiting is in turn.
      void current?.stop(graceMs);
      return inTurn(async () => {
        await current?.stop(graceMs);
        current = undefined;
      });
    },
    runOnce: () =>
      inTurn(async () => {
        if (current !== undefined) return;
        const run = new Run(parts);
        try {
          await run.once();
        } finally {
          await run.stop(0);
        }
      }),
    wake: (changed) => current?.look(changed),
    state: () =>
      current === undefined || current.isStopping ? "stopped" : current.isFailing ? "failing" : "running",
  };
}

export interface RunParts extends Omit<GuardedSenderParts, "maxPerOrigin"> {
  readonly store: DeliveryQueue;
  readonly random: Random;
  readonly logger: Logger;
  readonly config: DeliveryConfig;
  readonly version: string;
  readonly longChecks: OffThreadValidator;
  /** Goes on over all runs. */
  readonly counts?: DeliveryCounts;
}

/** What a lease has beyond the deadline of an attempt, for waiting to be begun and for storing its result. */
const LEASE_MARGIN_MS = 30_000;
/** So many results for each attempt that may be under way, and in all: with more that wait to be stored, nothing is claimed. */
const UNSTORED_PER_PLACE = 4;
const MOST_UNSTORED = 4_096;

interface Ended {
  readonly result: AttemptResult;
  readonly refusal: Refusal | undefined;
}

/**
 * The engine from one start to its stop.
 *
 * The claimer leases deliveries from the store, the local queue begins their attempts as there is room, and the finisher
 * stores what came of them. Only ended leases are asked for at a steady, slow pace: whoever held them may have died.
 */
export class Run {
  readonly #parts: RunParts;
  readonly #sender: Sender;
  readonly #attempts: Attempts;
  readonly #flows: Flows;
  readonly #filters: Filters;
  readonly #inFlight = new InFlight();
  readonly #queue: LocalQueue;
  readonly #claimer: Claimer;
  readonly #finisher: Finisher;
  readonly #leaseWatch: LeaseWatch;
  readonly #deadline: Deadline;
  readonly #slowing = new Slowing();
  readonly #turnTaking = new TurnTaking();
  #wasHeldBack = false;
  #stopped: Promise<void> | undefined;

  constructor(parts: RunParts) {
    const { store, clock, random, logger, config, version, longChecks } = parts;
    const { counts = new DeliveryCounts() } = parts;
    const { timeoutMs, disableAfter: disableAfterMs } = config;
    const capacity = capacityOf(config, ownMeans());
    const { inFlight: most, perSubscription: mostWindow, boundBy } = capacity;
    if (boundBy !== undefined) {
      logger.warn(
        {
          maxInFlight: most,
          maxInFlightPerSubscription: mostWindow,
          configured: config.maxInFlight,
          boundBy,
        },
        "Fewer attempts are under way at once than delivery.maxInFlight says: give the process more, or set it lower.",
      );
    }
    const leaseMs = Math.max(timeoutMs, SETTINGS_LIMITS.timeoutMaxMs) + LEASE_MARGIN_MS;
    this.#parts = parts;
    this.#sender = createGuardedSender({ ...parts, maxPerOrigin: most });
    this.#attempts = new Attempts({ clock, random, logger, counts, version, sender: this.#sender });
    this.#filters = new Filters({ logger, random, yielder: eventLoop, longChecks });
    const flows = (this.#flows = new Flows(mostWindow));
    const inFlight = this.#inFlight;
    counts.inFlight = () => inFlight.size;
    counts.capacity = capacity;
    this.#queue = new LocalQueue({
      clock,
      flows,
      most,
      inFlight,
      prepare: (claim) => this.#filters.prepare(claim),
      keepsBack: (flow, claim) => this.#keepsBack(flow, claim),
      begin: (flow, claim) => this.#begin(flow, claim),
      handBack: (claims) => this.#handBack(claims),
      yielder: eventLoop,
    });
    this.#claimer = new Claimer({
      store,
      clock,
      logger,
      leaseMs,
      most,
      flows,
      inFlight,
      queue: this.#queue,
      isHeldBack: () =>
        (this.#wasHeldBack = this.#finisher.backlog >= Math.min(MOST_UNSTORED, most * UNSTORED_PER_PLACE)),
    });
    this.#finisher = new Finisher({
      store,
      clock,
      logger,
      counts,
      disableAfterMs: disableAfterMs === 0 ? undefined : disableAfterMs,
      onStored: (result, isFenced) => this.#onStored(result, isFenced),
      onDeactivated: (subscriptionId) => this.#queue.drop(flows.of(subscriptionId)),
    });
    this.#deadline = new Deadline(clock);
    this.#leaseWatch = new LeaseWatch({
      store,
      clock,
      logger,
      everyMs: leaseMs / 4,
      isHolding: () => this.#finisher.isBehind,
      onRound: (released) => {
        // A clock that was set forward makes deliveries due before their timer ends.
        if (released > 0) this.look();
        else this.#claimer.lookIfLate();
      },
    });
  }

  get isStopping(): boolean {
    return this.#stopped !== undefined;
  }

  /** Whether what is due could not be read for some time. */
  get isFailing(): boolean {
    return this.#claimer.isFailing;
  }

  begin(): void {
    this.#leaseWatch.start();
    this.#claimer.start();
  }

  /** Looks for due deliveries now or, while a look is under way, right after it. See `Engine.wake`. */
  look(changed?: Subscription): void {
    if (changed !== undefined) {
      const flow = this.#flows.of(changed.rowid);
      // What is leased ahead would go by what it was.
      this.#queue.drop(flow);
      flow.changed(changed);
    }
    this.#claimer.look();
  }

  /** One claim, carried through until its attempts are stored. Not for a run that has begun. */
  async once(): Promise<void> {
    const { store, clock } = this.#parts;
    await store.releaseExpired(clock.now());
    await this.#claimer.claim();
    await this.#settled();
  }

  /**
   * Takes on nothing new, gives what is under way `graceMs` to end, then cuts it short and hands it back. Called again
   * it can only shorten the grace.
   */
  stop(graceMs: number): Promise<void> {
    this.#stopped ??= this.#drain();
    this.#deadline.shortenTo(graceMs);
    return this.#stopped;
  }

  async #drain(): Promise<void> {
    this.#leaseWatch.stop();
    this.#claimer.stop();
    this.#queue.close();
    await Promise.race([this.#settled(), this.#deadline.expired]);
    this.#deadline.clear();
    this.#inFlight.interruptAll();
    await this.#inFlight.settled();
    await this.#finisher.close();
    this.#sender.close();
  }

  /**
   * A look may still bring claims, claims bring results, and results have to be stored: hence in this order. With an ordered
   * subscription that lets the next one begin.
   */
  async #settled(): Promise<void> {
    await this.#claimer.idle();
    do {
      await this.#queue.pause;
      await this.#inFlight.settled();
      await this.#finisher.idle();
    } while (this.#queue.pause !== undefined || this.#inFlight.size > 0);
  }

  #keepsBack(flow: Flow, claim: Claim): boolean {
    if (!this.#filters.keepsBack(claim)) return false;
    const { clock, logger } = this.#parts;
    const { deliveryId: delivery, event, subscription } = claim;
    if (logger.isDebugEnabled) {
      logger.debug({ delivery, event: event.eventId, subscription: subscription.subscriptionId }, "filtered");
    }
    flow.keptBack();
    this.#finisher.add(withoutAttempt(claim, "filtered", clock.now()));
    this.#claimer.ended(flow);
    return true;
  }

  #begin(flow: Flow, claim: Claim): void {
    const { clock, logger } = this.#parts;
    let sending: Interruptible | undefined;
    const bytes = claim.event.payload?.byteLength ?? 0;
    const attempt: UnderWay = { interrupt: () => sending?.interrupt(), bytes };
    this.#inFlight.add(attempt);
    flow.began(clock.now(), bytes);
    try {
      sending = this.#attempts.begin(claim, (result, refusal) => {
        this.#inFlight.delete(attempt);
        flow.bytesUnderWay -= bytes;
        this.#ended(flow, { result, refusal });
      });
    } catch (error) {
      // Nothing in an attempt throws. If it does all the same, the lease ends and the delivery is tried again.
      logger.error({ delivery: claim.deliveryId, error: String(error) }, "An attempt broke off.");
      this.#inFlight.delete(attempt);
      flow.bytesUnderWay -= bytes;
      flow.interrupted();
      if (flow.isOrdered) this.#queue.drop(flow);
    }
  }

  #ended(flow: Flow, { result: sent, refusal }: Ended): void {
    const nowMs = this.#parts.clock.now();
    // By now, whatever it was when that began: the next one goes by it.
    const { isOrdered } = flow;
    let result = sent;
    if (refusal !== undefined) result = this.#slowing.refused(flow, result, refusal, nowMs);
    else if (result.statusCode !== undefined) {
      flow.answered(nowMs, result.durationMs, result.statusCode >= 500);
    } else if (result.errorCode === "interrupted") flow.interrupted();
    else flow.failed(nowMs, result.startedAtMs);
    if (isOrdered) this.#turnTaking.ended(flow, result);
    this.#finisher.add(result);
    // Its subscription is deactivated by that, or what was leased ahead would wait for long, or has to come after it.
    const isOver = isOrdered && result.next.kind !== "delivered";
    if (result.next.kind === "gone" || flow.isHeld || isOver) this.#queue.drop(flow);
    this.#queue.ended(flow);
    this.#claimer.ended(flow);
  }

  #handBack(claims: readonly Claim[]): void {
    const nowMs = this.#parts.clock.now();
    for (const claim of claims) this.#finisher.add(withoutAttempt(claim, "unsent", nowMs));
  }

  #onStored(result: AttemptResult, isFenced: boolean): void {
    const { next, slow } = result;
    let isDue = this.#wasHeldBack;
    const flow = this.#turnTaking.stored(result);
    if (flow !== undefined) {
      if (isFenced) this.#queue.drop(flow);
      this.#queue.ended(flow);
      this.#claimer.ended(flow);
      // It may be tried on, if it blocks by now.
      isDue ||= next.kind === "failed";
    }
    if (slow !== undefined) {
      this.#slowing.stored(result);
      this.#claimer.lookAt(slow.untilMs);
    }
    if (next.kind === "retry") this.#claimer.lookAt(next.atMs);
    // One whose handler is gone is due at once where the subscription has another handler by now.
    else if (next.kind === "unsent" || next.kind === "gone") isDue = true;
    this.#wasHeldBack = false;
    if (isDue) this.look();
  }
}
