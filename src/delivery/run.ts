import type { DeliveryConfig } from "../config/config.ts";
import { createAddressRules } from "../domain/address.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { Random } from "../runtime/random.ts";
import type { AttemptResult, Claim, Store } from "../store/store.ts";
import { createAddressGuard } from "./address-guard.ts";
import { logAttempt } from "./attempt-log.ts";
import { attempt, returnedResult } from "./attempt.ts";
import { Backoff } from "./backoff.ts";
import { Finisher } from "./finisher.ts";
import { Grace } from "./grace.ts";
import { InFlight } from "./in-flight.ts";
import { LeaseWatch } from "./lease-watch.ts";
import { createSender, type Sender } from "./sender.ts";

export interface RunParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly config: DeliveryConfig;
  readonly ownAddresses: () => readonly string[];
  readonly version: string;
  readonly ca?: string;
}

/** What a lease has beyond the deadline of an attempt, for storing its result. */
const LEASE_MARGIN_MS = 30_000;
/** A look that brings nothing although the store said so is repeated at this pace at most. */
const EMPTY_LOOK_MS = 50;

/**
 * The engine from one start to its stop.
 *
 * It looks for due deliveries (`claimDue`) when it starts, when something was published, when the next known one comes
 * due, and when an attempt that took up room has ended; never on the off chance. Only ended leases are asked for at a
 * steady, slow pace: whoever held them may have died.
 */
export class Run {
  readonly #parts: RunParts;
  readonly #leaseMs: number;
  readonly #sender: Sender;
  readonly #inFlight: InFlight;
  readonly #finisher: Finisher;
  readonly #backoff: Backoff;
  readonly #leaseWatch: LeaseWatch;
  #hasBegun = false;
  #looking: Promise<void> | undefined;
  #lookAgain = false;
  #heldBack = false;
  #dueTimer: { readonly atMs: number; readonly cancel: () => void } | undefined;
  readonly #grace: Grace;
  #stopped: Promise<void> | undefined;

  constructor(parts: RunParts) {
    const { store, clock, logger, config, ownAddresses, ca } = parts;
    const { timeoutMs, maxInFlight, maxInFlightPerSubscription, allowNetworks } = config;
    this.#parts = parts;
    this.#leaseMs = timeoutMs + LEASE_MARGIN_MS;
    const guard = createAddressGuard({ rules: createAddressRules(allowNetworks), ownAddresses });
    this.#sender = createSender({
      clock,
      guard,
      timeoutMs,
      maxInFlight,
      ...(ca === undefined ? {} : { ca }),
    });
    this.#inFlight = new InFlight(maxInFlight, maxInFlightPerSubscription, () => this.look());
    this.#finisher = new Finisher({ store, clock, logger, onStored: (results) => this.#onStored(results) });
    this.#backoff = new Backoff(clock);
    this.#grace = new Grace(clock);
    this.#leaseWatch = new LeaseWatch({
      store,
      clock,
      logger,
      everyMs: this.#leaseMs / 4,
      isHolding: () => this.#finisher.backlog > 0,
      onRound: (released) => this.#onLeases(released),
    });
  }

  get isStopping(): boolean {
    return this.#stopped !== undefined;
  }

  begin(): void {
    this.#hasBegun = true;
    this.#leaseWatch.start();
    this.look();
  }

  /** Looks for due deliveries now or, while a look is under way, right after it. */
  look(): void {
    if (!this.#hasBegun || this.isStopping) return;
    if (this.#looking !== undefined) {
      this.#lookAgain = true;
      return;
    }
    this.#looking = this.#lookUntilDone();
  }

  /** One look, carried through until its attempts are stored. Not for a run that has begun. */
  async once(): Promise<void> {
    const { store, clock } = this.#parts;
    await store.releaseExpired(clock.now());
    await this.#claim();
    await this.#settled();
  }

  /**
   * Takes on nothing new, gives what is under way `graceMs` to end, then cuts it short and hands it back. Called again
   * it can only shorten the grace.
   */
  stop(graceMs: number): Promise<void> {
    this.#stopped ??= this.#drain();
    this.#grace.shortenTo(graceMs);
    return this.#stopped;
  }

  async #drain(): Promise<void> {
    this.#dueTimer?.cancel();
    this.#leaseWatch.stop();
    this.#backoff.cut();
    await Promise.race([this.#settled(), this.#grace.over]);
    this.#grace.cancel();
    this.#inFlight.abortAll();
    await this.#inFlight.settled();
    await this.#finisher.close();
    await this.#sender.close();
  }

  /** A look may still bring claims, claims bring results, and results have to be stored: hence in this order. */
  async #settled(): Promise<void> {
    await this.#looking;
    await this.#inFlight.settled();
    await this.#finisher.idle();
  }

  async #lookUntilDone(): Promise<void> {
    let more = true;
    while (more && !this.isStopping) {
      this.#lookAgain = false;
      try {
        more = await this.#claim();
        if (this.#backoff.failing) this.#parts.logger.info({}, "Deliveries go on.");
        this.#backoff.succeeded();
      } catch (error) {
        if (!this.isStopping) await this.#waitForStore(error);
      }
      more ||= this.#lookAgain;
    }
    // In the same turn as the last look at `#lookAgain`, so that no call of `look` falls between.
    this.#looking = undefined;
  }

  async #waitForStore(error: unknown): Promise<void> {
    if (!this.#backoff.failing) {
      const reason = error instanceof Error ? error.message : String(error);
      this.#parts.logger.warn({ error: reason }, "Due deliveries cannot be read; trying on.");
    }
    await this.#backoff.wait();
  }

  /** Claims once and begins the attempts. Answers whether to claim again at once. */
  async #claim(): Promise<boolean> {
    const { store, clock, config } = this.#parts;
    const { limit, perSubscription } = this.#inFlight.share();
    // The next attempt to end looks again.
    if (limit === 0) return false;
    // So does the finisher: results must not pile up without end while storing them is slower than making them.
    this.#heldBack = this.#finisher.backlog >= config.maxInFlight;
    if (this.#heldBack) return false;
    const nowMs = clock.now();
    const { claims, nextDueAtMs } = await store.claimDue({
      nowMs,
      limit,
      leaseMs: this.#leaseMs,
      perSubscription,
      inFlight: new Map(this.#inFlight.bySubscription),
    });
    for (const claim of claims) {
      if (this.isStopping) this.#finisher.add(returnedResult(claim, clock.now()));
      else this.#inFlight.run(claim.subscriptionId, (signal) => this.#attempt(claim, signal));
    }
    if (nextDueAtMs === undefined) return false;
    if (claims.length > 0 && nextDueAtMs <= nowMs) return true;
    this.#lookAt(nextDueAtMs > nowMs ? nextDueAtMs : nowMs + EMPTY_LOOK_MS);
    return false;
  }

  async #attempt(claim: Claim, signal: AbortSignal): Promise<void> {
    const { clock, random, logger, version } = this.#parts;
    try {
      const result = await attempt(claim, { clock, random, version, sender: this.#sender }, signal);
      logAttempt(logger, claim, result);
      this.#finisher.add(result);
    } catch (error) {
      // Nothing in an attempt throws. If it does all the same, the lease ends and the delivery is tried again.
      logger.error({ delivery: claim.deliveryId, error: String(error) }, "An attempt broke off.");
    }
  }

  #onStored(results: readonly AttemptResult[]): void {
    for (const { next } of results) if (next.kind === "retry") this.#lookAt(next.atMs);
    if (this.#heldBack) this.look();
  }

  #onLeases(released: number): void {
    // A clock that was set forward makes deliveries due before their timer ends.
    const isLate = this.#dueTimer !== undefined && this.#dueTimer.atMs <= this.#parts.clock.now();
    if (released > 0 || isLate) this.look();
  }

  /** Looks at that time unless it does so earlier anyway. */
  #lookAt(atMs: number): void {
    const { clock } = this.#parts;
    if (atMs <= clock.now()) return this.look();
    if (this.isStopping || (this.#dueTimer !== undefined && this.#dueTimer.atMs <= atMs)) return;
    this.#dueTimer?.cancel();
    const cancel = clock.setTimer(() => {
      this.#dueTimer = undefined;
      this.look();
    }, atMs - clock.now());
    this.#dueTimer = { atMs, cancel };
  }
}
