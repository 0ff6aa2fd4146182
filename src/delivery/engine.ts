import { EvregError, messageOf } from "../domain/error.ts";
import { createAddressRules } from "../domain/addresses.ts";
import type { Health } from "../domain/operations.ts";
import { SUBSCRIPTION_LIMITS } from "../model/subscription.ts";
import type { Subscription } from "../domain/subscription.ts";
import { aheadMs, Alarm, type ClockStep, sleep } from "../runtime/clock.ts";
import { eventLoop } from "../runtime/yielding.ts";
import type { AttemptResult, Claim, RecordClaim } from "../store/queue.ts";
import { AddressGuard } from "./address-guard.ts";
import { startAttempt, withoutAttempt } from "./attempt.ts";
import { HandlerTests } from "./handler-tests.ts";
import { HostNames } from "./host-names.ts";
import { Filters } from "./filters.ts";
import type { Item } from "./lane.ts";
import { capacityOf, processLimits } from "./limits.ts";
import { WaitingConsumers } from "./waiting-consumers.ts";
import type { EngineParts } from "./parts.ts";
import { PullAttempts } from "./pull-attempts.ts";
import { Schedule } from "./schedule.ts";
import { Sender, trusting } from "./sender.ts";
import { type ShownAttempt, shownOf, StoreCalls } from "./store-calls.ts";

/** A lease is longer than the longest attempt by the wait before it starts and the time to store its result. */
const LEASE_MARGIN_MS = 30_000;

/**
 * Delivers what is due, from its start to its stop; there is one of either. Whatever happens, `#advance` then does what the schedule
 * says.
 */
export class Engine {
  readonly #parts: EngineParts;
  readonly #attemptParts: Parameters<typeof startAttempt>[0];
  readonly #leaseMs: number;
  readonly #schedule: Schedule;
  readonly #calls: StoreCalls;
  readonly #filters: Filters;
  readonly #names: HostNames;
  readonly #sender: Sender;
  readonly #tests: HandlerTests;
  readonly #pulls: WaitingConsumers;
  /** Rings when the time has come for what the schedule waits for. */
  readonly #alarm: Alarm;
  /** When it stops waiting for what is under way. */
  readonly #deadline = Promise.withResolvers<void>();
  /** Nothing waits for the deadline any more. */
  readonly #waitsOver = new AbortController();
  #cancelRescue: () => void = () => {};
  /** True from its start to the beginning of its stop. */
  #isRunning = false;
  #isAdvancing = false;
  #claiming: Promise<void> | undefined;
  /** Resolves when nothing is under way and all results are stored. */
  #idle: PromiseWithResolvers<void> | undefined;
  /** Attempts go on after other work on this thread. */
  #isYielding = false;
  #drained: Promise<void> | undefined;
  /** What was leased as it was recorded is started at the end of this turn. */
  #isSendDue = false;

  constructor(parts: EngineParts) {
    const { clock, logger, config, ownPorts, ca, counts } = parts;
    const { timeoutMs, allowHttp, allowNetworks } = config;
    const limits = processLimits();
    const capacity = capacityOf(config, limits);
    const { inFlight: maxInFlight, perSubscription } = capacity;
    if (maxInFlight < config.maxInFlight) {
      logger.warn(
        {
          maxInFlight,
          maxInFlightPerSubscription: perSubscription,
          configured: config.maxInFlight,
          ...limits,
        },
        "Fewer attempts are under way at once than delivery.maxInFlight says: give the process more, or set it lower.",
      );
    }
    this.#parts = parts;
    this.#leaseMs = Math.max(timeoutMs, SUBSCRIPTION_LIMITS.timeoutMaxMs) + LEASE_MARGIN_MS;
    this.#schedule = new Schedule(maxInFlight, perSubscription);
    this.#calls = new StoreCalls(parts);
    this.#filters = new Filters({ ...parts, yielder: eventLoop });
    this.#names = new HostNames({ clock, withinMs: timeoutMs });
    const { resolve } = this.#names;
    const guard = new AddressGuard({ rules: createAddressRules(allowNetworks), ownPorts, resolve });
    const secureContext = ca === undefined ? undefined : trusting(ca);
    this.#sender = new Sender({ clock, guard, allowHttp, timeoutMs, secureContext });
    this.#tests = new HandlerTests({ ...parts, sender: this.#sender });
    this.#attemptParts = { ...parts, sender: this.#sender };
    this.#alarm = new Alarm(clock, () => this.#advance());
    const attempts = new PullAttempts({ ...parts, calls: this.#calls, filters: this.#filters });
    this.#pulls = new WaitingConsumers({
      ...parts,
      attempts,
      releaseExpired: () => this.#releaseExpired(),
    });
    counts.inFlight = () => this.#schedule.counts.items.sending;
    counts.capacity = capacity;
  }

  state(): Health["engine"] {
    if (!this.#isRunning) return "stopped";
    return this.#calls.isFailing ? "failing" : "running";
  }

  /** Does nothing once it was started. */
  start(): void {
    if (this.#isRunning || this.#drained !== undefined) return;
    this.#isRunning = true;
    void this.#rescueLeases();
    this.wake();
  }

  /**
   * Takes on nothing new, waits up to `deadlineMs` for attempts under way, then aborts them and returns their deliveries.
   * Resolves when nothing is under way any more and all results are stored. Calling again is safe and can only shorten the
   * wait.
   */
  stop(deadlineMs: number): Promise<void> {
    this.#drained ??= this.#drain();
    // The first of several that is over counts.
    if (deadlineMs <= 0) this.#deadline.resolve();
    else void sleep(this.#parts.clock, deadlineMs, this.#waitsOver.signal).then(this.#deadline.resolve);
    return this.#drained;
  }

  /**
   * Signals that something may be due now. Cheap; does nothing unless it runs.
   * @param changed a subscription as it is after a change: no attempt starts any more by what it was before
   */
  wake(changed?: Subscription): void {
    if (!this.#isRunning) return;
    if (changed !== undefined) this.#schedule.changed(changed);
    this.#schedule.due();
    this.#advance();
    this.#pulls.wake();
  }

  /**
   * The clock was set, see `WatchedClock`. What waits for a time that is stored waits by the clock: where that was set back, the
   * stored times are moved with it; where it was set forward, they are due.
   */
  clockWasSet(step: ClockStep): void {
    // Where several share a clock, one of them moves what waits. What is stored by the new time is stored behind that.
    if (step.byMs < 0 && this.#parts.node.hasDuties())
      void this.#calls.moveWaits(step).then(() => this.wake());
    // Whoever read the clock is in the midst of something.
    else queueMicrotask(() => this.wake());
  }

  /**
   * What an event of the action that is being recorded may lease at once; `undefined` for nothing. To be followed by
   * `recorded`.
   */
  claimOf(action: string): RecordClaim | undefined {
    if (!this.#isRunning) return undefined;
    return this.#schedule.reserve(action, this.#parts.clock.monotonicMs(), this.#leaseMs);
  }

  /** @param claims what was leased; none if the event was refused */
  recorded(claim: RecordClaim, claims: readonly Claim[]): void {
    this.#schedule.recorded(claim, claims, this.#parts.clock.monotonicMs());
    // Many are recorded by one commit. Those who published them are answered before anything is sent.
    if (this.#isSendDue) return;
    this.#isSendDue = true;
    setImmediate(() => {
      this.#isSendDue = false;
      this.#advance();
    });
  }

  /** Sends one signed request outside the queue. `unavailable` unless it runs, `rate_limited` while many are under way. */
  async test(request: Parameters<HandlerTests["send"]>[0]): ReturnType<HandlerTests["send"]> {
    if (!this.#isRunning) throw new EvregError("unavailable", "The delivery engine is stopped.");
    return this.#tests.send(request);
  }

  /**
   * What consumers of pull subscriptions call.
   * @throws EvregError `unavailable` while it does not run
   */
  get pulls(): WaitingConsumers {
    if (this.#isRunning) return this.#pulls;
    throw new EvregError("unavailable", "Nothing is given to consumers: the delivery engine is stopped.");
  }

  async #drain(): Promise<void> {
    this.#isRunning = false;
    this.#alarm.clear();
    this.#cancelRescue();
    this.#calls.stopClaims();
    this.#schedule.close();
    this.#advance();
    const pullsEnd = this.#pulls.close();
    await Promise.race([this.#whenIdle(), this.#deadline.promise]);
    this.#waitsOver.abort();
    this.#sender.close();
    this.#names.close();
    this.#calls.stopResults();
    await this.#whenIdle();
    await pullsEnd;
  }

  async #whenIdle(): Promise<void> {
    // What a claim under way brings goes back before another engine starts, which would not hear of it.
    await this.#claiming;
    if (this.#schedule.isIdle) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
  }

  /** Does what the schedule says, until that is to wait. */
  #advance(): void {
    // An attempt may end as it starts; the call under way goes on with it.
    if (this.#isAdvancing) return;
    this.#isAdvancing = true;
    const nowMs = this.#parts.clock.monotonicMs();
    const mayStart = (): boolean => !this.#isYielding && this.#isCurrent();
    let step = this.#schedule.step(nowMs, mayStart());
    for (; step.do !== "wait"; step = this.#schedule.step(nowMs, mayStart())) {
      if (step.do === "claim") this.#claiming = this.#claim();
      else if (step.do === "drop") this.#storeWithoutAttempt(step.item, step.claim, "never started");
      // Signing takes its time: 250 bodies of 64 KiB would hold up every request for 30 ms.
      else if (eventLoop.shouldYield()) void this.#yield();
      else this.#begin(step.item, step.claim, nowMs);
    }
    this.#isAdvancing = false;
    if (this.#schedule.isIdle) {
      this.#idle?.resolve();
      this.#idle = undefined;
    }
    // The alarm may ring at once, if time has passed meanwhile.
    if (!this.#isYielding && step.untilMs !== Infinity) this.#alarm.at(step.untilMs);
  }

  /** Whether what is known of subscriptions holds; it is forgotten once others have changed it. */
  #isCurrent(): boolean {
    let changed: readonly number[];
    try {
      changed = this.#parts.node.takeChanged();
    } catch {
      // The node wakes it once it knows again.
      return false;
    }
    this.#schedule.changedByOthers(changed);
    return true;
  }

  async #yield(): Promise<void> {
    this.#isYielding = true;
    await eventLoop.yield();
    this.#isYielding = false;
    this.#advance();
  }

  /** Makes deliveries due again whose lease has expired. Nothing signals that, so it is the only thing done at intervals. */
  async #rescueLeases(): Promise<void> {
    await this.#releaseExpired();
    if (!this.#isRunning) return;
    this.#cancelRescue = this.#parts.clock.setTimer(() => void this.#rescueLeases(), this.#leaseMs / 4);
  }

  async #releaseExpired(): Promise<void> {
    if ((await this.#calls.releaseExpired()) > 0) this.wake();
  }

  /** Claims while something may be due and there is capacity. */
  async #claim(): Promise<void> {
    const { clock } = this.#parts;
    // The claim then includes everything that becomes due in this turn.
    await Promise.resolve();
    const request = this.#isRunning
      ? this.#schedule.request(clock.monotonicMs(), this.#leaseMs, aheadMs(clock))
      : undefined;
    if (request !== undefined) {
      const answer = await this.#calls.claim(request);
      this.#schedule.claimed(answer, clock.monotonicMs(), aheadMs(clock));
    }
    this.#advance();
  }

  #begin(item: Item, claim: Claim, nowMs: number): void {
    const passes = this.#filters.passes(claim);
    if (passes === false) return this.#exclude(item, claim, "filtered");
    this.#schedule.start(item, nowMs);
    if (passes === true) this.#send(item, claim);
    else void this.#sendIf(passes, item, claim);
  }

  /** The filter is compiled first, or the payload is large: that is a stage of the attempt. */
  async #sendIf(passing: Promise<boolean>, item: Item, claim: Claim): Promise<void> {
    const passes = await passing;
    if (passes && this.#isRunning) this.#send(item, claim);
    else this.#exclude(item, claim, passes ? "never started" : "filtered");
    this.#advance();
  }

  #exclude(item: Item, claim: Claim, ending: "never started" | "filtered"): void {
    this.#schedule.exclude(item);
    this.#storeWithoutAttempt(item, claim, ending);
  }

  #storeWithoutAttempt(item: Item, claim: Claim, ending: "never started" | "filtered"): void {
    void this.#store(item, withoutAttempt(claim, ending, this.#parts.clock.now()), shownOf(claim));
  }

  #send(item: Item, claim: Claim): void {
    const { clock, logger } = this.#parts;
    try {
      startAttempt(this.#attemptParts, claim, (result, shown) => {
        const ended = this.#schedule.ended(item, result, clock.monotonicMs(), aheadMs(clock));
        void this.#store(item, ended, shown);
        this.#advance();
      });
    } catch (error) {
      // Nothing in an attempt should throw. If it does, the lease ends and the delivery is tried again.
      logger.error({ delivery: claim.deliveryId, error: messageOf(error) }, "An attempt broke off.");
      this.#schedule.broke(item);
    }
  }

  async #store(item: Item, result: AttemptResult, shown: ShownAttempt): Promise<void> {
    const { clock } = this.#parts;
    const isNextWanted = this.#isRunning && result.ending !== "never started";
    const reserved = isNextWanted ? this.#schedule.reserveNext(item.lane, clock.monotonicMs()) : undefined;
    const nextLeaseMs = this.#leaseMs;
    const stored = reserved === undefined ? result : { ...result, nextLeaseMs };
    const outcome = await this.#calls.finish(stored, shown);
    this.#schedule.stored(item, outcome, aheadMs(clock));
    if (reserved !== undefined) {
      const next = outcome?.kind === "stored" && outcome.next !== undefined ? [outcome.next] : [];
      this.#schedule.recorded(reserved, next, clock.monotonicMs());
    }
    this.#advance();
  }
}
