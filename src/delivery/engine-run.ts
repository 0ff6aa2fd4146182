import { messageOf } from "../domain/error.ts";
import type { DeliveryConfig } from "../config/schema.ts";
import { createAddressRules } from "../domain/addresses.ts";
import type { Health } from "../domain/operations.ts";
import { SETTINGS_LIMITS } from "../domain/subscription-settings.ts";
import type { DeliveryResult } from "../domain/stream.ts";
import type { Subscription } from "../domain/subscription.ts";
import type { DeliveryCounts } from "../metrics/counters.ts";
import { aheadMs, Alarm, type Clock, type Random, sleep } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import { eventLoop } from "../runtime/yielding.ts";
import type { OffThreadValidator } from "../schema/validate/compile.ts";
import type { AttemptResult, Claim, DeliveryQueue, FinishOutcome, RecordClaim } from "../store/queue.ts";
import { createAddressGuard } from "./address-guard.ts";
import { Attempts, logAttempt, shownResult, type ShownAttempt, withoutAttempt } from "./attempt.ts";
import { HandlerTests } from "./handler-tests.ts";
import { HostNames } from "./dns/resolver.ts";
import { Filters } from "./filters.ts";
import { capacityOf, processLimits } from "./limits.ts";
import { PullAttempts } from "./pull-attempts.ts";
import { PullDesk } from "./pull-desk.ts";
import { type NextClaim, Scheduler } from "./scheduler.ts";
import type { SubscriptionState } from "./subscription-state.ts";
import { Sender } from "./sender.ts";
import { finishOptions, StoreCalls } from "./store-calls.ts";
import { trusting } from "./tls-trust.ts";

export interface EngineDependencies {
  readonly store: DeliveryQueue;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly config: DeliveryConfig;
  readonly version: string;
  readonly longChecks: OffThreadValidator;
  /** Goes on over all starts and stops. */
  readonly counts: DeliveryCounts;
  /** Called with each result that was stored. */
  readonly onResult?: (result: DeliveryResult) => void;
  /** Called with a subscription that was deactivated as its handler is gone or has failed for too long. */
  readonly onDeactivated?: (subscriptionId: number) => void;
  /** What this service listens on, where nothing is sent to. */
  readonly ownAddresses: () => readonly string[];
  /** PEM of certificate authorities to trust beside those that Node trusts. */
  readonly ca?: string | undefined;
  /** DNS servers to use instead of the system's, as `address:port`. */
  readonly dnsServers?: readonly string[];
}

/** A lease is longer than the longest attempt by the wait before it starts and the time to store its result. */
const LEASE_MARGIN_MS = 30_000;

/** The engine from one start to its stop. Whatever happens, `#advance` then does what can be done. */
export class EngineRun {
  readonly #dependencies: EngineDependencies;
  readonly #leaseMs: number;
  readonly #scheduler: Scheduler;
  readonly #calls: StoreCalls;
  readonly #filters: Filters;
  readonly #names: HostNames;
  readonly #sender: Sender;
  readonly #attempts: Attempts;
  readonly tests: HandlerTests;
  readonly pulls: PullDesk;
  /** Rings when the time has come for what the scheduler waits for. */
  readonly #alarm: Alarm;
  /** When it stops waiting for what is in flight. */
  readonly #deadline = Promise.withResolvers<void>();
  /** Nothing waits for the deadline any more. */
  readonly #waitsOver = new AbortController();
  #cancelRescue: () => void = () => {};
  /** From its start to the beginning of its stop. */
  #isRunning = false;
  #isAdvancing = false;
  #claiming: Promise<void> | undefined;
  /** Resolves when nothing is in flight and all results are stored. */
  #idle: PromiseWithResolvers<void> | undefined;
  /** Resolves when attempts are started again, after other work on this thread. */
  #yielding: Promise<void> | undefined;
  /** Resolve when a filter is ready. */
  readonly #preparing = new Set<Promise<void>>();
  #drained: Promise<void> | undefined;
  /** What was leased as it was recorded is started at the end of this turn. */
  #isSendDue = false;

  constructor(dependencies: EngineDependencies) {
    const { store, clock, random, logger, config, version, longChecks } = dependencies;
    const { ownAddresses, ca, dnsServers, counts } = dependencies;
    const { timeoutMs, allowHttp, allowNetworks } = config;
    const capacity = capacityOf(config, processLimits());
    const { inFlight: maxInFlight, perSubscription, boundBy } = capacity;
    if (boundBy !== undefined) {
      logger.warn(
        { maxInFlight, maxInFlightPerSubscription: perSubscription, configured: config.maxInFlight, boundBy },
        "Fewer attempts are under way at once than delivery.maxInFlight says: give the process more, or set it lower.",
      );
    }
    this.#dependencies = dependencies;
    this.#leaseMs = Math.max(timeoutMs, SETTINGS_LIMITS.timeoutMaxMs) + LEASE_MARGIN_MS;
    this.#scheduler = new Scheduler(maxInFlight, perSubscription);
    this.#calls = new StoreCalls({ store, clock, logger, counts }, finishOptions(config));
    this.#filters = new Filters({ logger, random, yielder: eventLoop, longChecks });
    this.#names = new HostNames({ clock, withinMs: timeoutMs, servers: dnsServers });
    const { resolve } = this.#names;
    const guard = createAddressGuard({ rules: createAddressRules(allowNetworks), ownAddresses, resolve });
    const secureContext = ca === undefined ? undefined : trusting(ca);
    const sender = { clock, guard, allowHttp, timeoutMs, secureContext };
    this.#sender = new Sender({ ...sender, maxPerOrigin: maxInFlight });
    this.tests = new HandlerTests({ clock, random, version, sender });
    const common = { clock, random, counts, version };
    this.#attempts = new Attempts({ ...common, sender: this.#sender });
    this.#alarm = new Alarm(clock, () => this.#advance());
    const pulling = { ...common, logger, store, calls: this.#calls, filters: this.#filters };
    const attempts = new PullAttempts({ ...pulling, onStored: (...ended) => this.#report(...ended) });
    this.pulls = new PullDesk({ ...pulling, attempts, onReleased: () => this.wake() });
    counts.inFlight = () => this.#scheduler.inFlight;
    counts.capacity = capacity;
  }

  get state(): Health["engine"] {
    if (!this.#isRunning) return "stopped";
    return this.#calls.isFailing ? "failing" : "running";
  }

  start(): void {
    this.#isRunning = true;
    void this.#rescueLeases();
    this.wake();
  }

  wake(changed?: Subscription): void {
    if (changed !== undefined) this.#scheduler.changed(changed);
    this.#scheduler.claims.dueAt();
    this.#advance();
    this.pulls.wake();
  }

  claimOf(action: string): RecordClaim | undefined {
    if (!this.#isRunning) return undefined;
    return this.#scheduler.reserve(action, this.#dependencies.clock.monotonicMs(), this.#leaseMs);
  }

  recorded(claim: RecordClaim, claims: readonly Claim[]): void {
    this.#scheduler.recorded(claim, claims, this.#dependencies.clock.monotonicMs());
    // Many are recorded by one commit. Those who published them are answered before anything is sent.
    if (this.#isSendDue) return;
    this.#isSendDue = true;
    setImmediate(() => {
      this.#isSendDue = false;
      this.#advance();
    });
  }

  /** One claim, carried through until its results are stored. Not for one that was started. */
  async once(): Promise<void> {
    const { store, clock } = this.#dependencies;
    await store.releaseExpired(clock.now());
    const request = this.#scheduler.claims.request(clock.monotonicMs(), this.#leaseMs);
    if (request === undefined) return;
    const answer = await store.claim({ ...request, nowMs: clock.now() });
    this.#scheduler.leased(answer, clock.monotonicMs(), aheadMs(clock));
    this.#advance();
    await this.#settled();
  }

  stop(deadlineMs: number): Promise<void> {
    this.#drained ??= this.#drain();
    // The first of several that is over counts.
    if (deadlineMs <= 0) this.#deadline.resolve();
    else
      void sleep(this.#dependencies.clock, deadlineMs, this.#waitsOver.signal).then(this.#deadline.resolve);
    return this.#drained;
  }

  async #drain(): Promise<void> {
    this.#isRunning = false;
    this.#alarm.clear();
    this.#cancelRescue();
    this.#calls.stopClaims();
    this.#scheduler.close();
    this.#advance();
    const pullsEnd = this.pulls.close();
    await Promise.race([this.#settled(), this.#deadline.promise]);
    this.#waitsOver.abort();
    this.#sender.close();
    this.tests.close();
    this.#names.close();
    this.#calls.stopResults();
    // What a claim under way brings goes back before another engine starts, which would not hear of it.
    await this.#claiming;
    await this.#whenIdle();
    await pullsEnd;
  }

  /** A claim may bring deliveries, which have results, which must be stored. */
  async #settled(): Promise<void> {
    await this.#claiming;
    do {
      await this.#pending;
      await this.#whenIdle();
    } while (this.#pending !== undefined || !this.#scheduler.isIdle);
  }

  async #whenIdle(): Promise<void> {
    if (this.#scheduler.isIdle) return;
    this.#idle ??= Promise.withResolvers<void>();
    await this.#idle.promise;
  }

  /** What delays claims that may be started. */
  get #pending(): Promise<void> | undefined {
    return this.#yielding ?? this.#preparing.values().next().value;
  }

  /** Starts what may be started, passes results on, claims, and sets the alarm. */
  #advance(): void {
    // An attempt may end as it starts; the call under way goes on with it.
    if (this.#isAdvancing) return;
    this.#isAdvancing = true;
    const nowMs = this.#dependencies.clock.monotonicMs();
    if (this.#yielding === undefined) this.#startReady(nowMs);
    for (const claim of this.#scheduler.takeReleased()) {
      void this.#complete(withoutAttempt(claim, "never started", this.#dependencies.clock.now()));
    }
    const wantsClaim = this.#scheduler.claims.isWanted(nowMs);
    if (wantsClaim && this.#isRunning) this.#claiming ??= this.#claim();
    const nextChangeAtMs = this.#scheduler.nextChangeAtMs(nowMs);
    this.#isAdvancing = false;
    if (this.#scheduler.isIdle) {
      this.#idle?.resolve();
      this.#idle = undefined;
    }
    // The alarm may ring at once, if time has passed meanwhile.
    if (this.#yielding === undefined && nextChangeAtMs !== Infinity) this.#alarm.at(nextChangeAtMs);
  }

  /** Makes deliveries due again whose lease has expired. Nothing signals that, so it is the only thing done at intervals. */
  async #rescueLeases(): Promise<void> {
    const released = await this.#calls.releaseExpired();
    if (released > 0) this.wake();
    if (!this.#isRunning) return;
    this.#cancelRescue = this.#dependencies.clock.setTimer(
      () => void this.#rescueLeases(),
      this.#leaseMs / 4,
    );
  }

  #startReady(nowMs: number): void {
    for (;;) {
      const next = this.#scheduler.next(nowMs);
      if (next === undefined) return;
      // Signing takes its time: 250 bodies of 64 KiB would hold up every request for 30 ms.
      if (eventLoop.shouldYield()) {
        this.#yielding = this.#yield();
        return;
      }
      const { filter } = next.claim.subscription.settings;
      const verdict = filter === null ? "send" : this.#filters.verdict(next.claim, filter);
      if (verdict === "send") this.#start(next, nowMs);
      else if (verdict === "exclude") this.#exclude(next);
      else void this.#awaitFilter(next, verdict);
    }
  }

  async #yield(): Promise<void> {
    await eventLoop.yield();
    this.#yielding = undefined;
    this.#advance();
  }

  async #awaitFilter(next: NextClaim, ready: Promise<void>): Promise<void> {
    const { sub } = next;
    this.#scheduler.awaitFilter(next);
    this.#preparing.add(ready);
    await ready;
    this.#preparing.delete(ready);
    this.#scheduler.filterReady(sub);
    this.#advance();
  }

  #exclude(next: NextClaim): void {
    const { logger, clock } = this.#dependencies;
    const { deliveryId: delivery, event, subscription } = next.claim;
    if (logger.isDebugEnabled) {
      const { subscriptionId, application, name } = subscription;
      const to = { subscription: subscriptionId, action: event.action, to: `${application}/${name}` };
      logger.debug({ delivery, event: event.eventId, ...to }, "filtered");
    }
    this.#scheduler.exclude(next);
    const { action } = event;
    const excluded = { ...next.claim, eventId: event.eventId, action, attempt: next.claim.attempt - 1 };
    void this.#complete(withoutAttempt(next.claim, "filtered", clock.now()), excluded, next.sub);
  }

  #start(next: NextClaim, nowMs: number): void {
    const { claim, sub } = next;
    const { clock, logger } = this.#dependencies;
    const bytes = this.#scheduler.start(next, nowMs);
    try {
      this.#attempts.start(claim, (result, throttle, started) => {
        const ended = this.#scheduler.ended(
          sub,
          bytes,
          result,
          throttle,
          clock.monotonicMs(),
          aheadMs(clock),
        );
        void this.#complete(ended, started, sub);
        this.#advance();
      });
    } catch (error) {
      // Nothing in an attempt should throw. If it does, the lease ends and the delivery is tried again.
      logger.error({ delivery: claim.deliveryId, error: messageOf(error) }, "An attempt broke off.");
      this.#scheduler.broken(sub, bytes);
    }
  }

  /**
   * @param of left out where it is of no interest to others
   * @param sub left out where nothing may come next
   */
  async #complete(result: AttemptResult, of?: ShownAttempt, sub?: SubscriptionState): Promise<void> {
    const { clock } = this.#dependencies;
    const isWanted = this.#isRunning && sub !== undefined;
    const reserved = isWanted ? this.#scheduler.reserveNext(sub, clock.monotonicMs()) : undefined;
    const nextLeaseMs = this.#leaseMs;
    const outcome = await this.#calls.finish(reserved === undefined ? result : { ...result, nextLeaseMs });
    this.#scheduler.stored(result, outcome, aheadMs(clock));
    if (reserved !== undefined) {
      const next = outcome?.kind === "stored" && outcome.next !== undefined ? [outcome.next] : [];
      this.#scheduler.recorded(reserved, next, clock.monotonicMs());
    }
    if (outcome !== undefined && of !== undefined) this.#report(of, result, outcome);
    this.#advance();
  }

  #report(of: ShownAttempt, result: AttemptResult, outcome: FinishOutcome): void {
    if (outcome.kind !== "stored") return;
    const { clock, logger, onResult, onDeactivated } = this.#dependencies;
    const nowMs = clock.now();
    logAttempt(logger, of, result, outcome, nowMs);
    onResult?.(shownResult(of, result, outcome, nowMs));
    if (outcome.deactivated !== undefined) onDeactivated?.(outcome.deactivated.subscriptionId);
  }

  /** Claims while something may be due and there is capacity. */
  async #claim(): Promise<void> {
    const { clock } = this.#dependencies;
    while (this.#isRunning && this.#scheduler.claims.isWanted(clock.monotonicMs())) {
      // So that the claim includes everything that becomes due in this turn.
      await Promise.resolve();
      const request = this.#scheduler.claims.request(clock.monotonicMs(), this.#leaseMs);
      if (request === undefined) continue;
      const answer = await this.#calls.claim({ ...request, nowMs: clock.now() });
      if (answer === undefined) this.#scheduler.claims.failed();
      else this.#scheduler.leased(answer, clock.monotonicMs(), aheadMs(clock));
      this.#advance();
    }
    this.#claiming = undefined;
  }
}
