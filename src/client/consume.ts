import { EvregError, invalidField, messageOf } from "../domain/error.ts";
import {
  type ConsumerErrorCode,
  type FinishedPull,
  PULL_LIMITS,
  type PulledDelivery,
  type PullResult,
} from "../domain/pull.ts";
import type { SubscriptionsPort } from "../evreg.ts";
import { Backoff, isPassing } from "./backoff.ts";
import { parseText } from "../json/parse.ts";

export interface ConsumeOptions {
  /** Deliveries that may be under way at once; 1 unless told. */
  readonly concurrency?: number;
  /** How long this process may be silent before others get its deliveries; 30 s unless told. Leases are extended by themselves. */
  readonly leaseMs?: number;
  /** Who takes them, as `deliveries get` shows it; the token's name unless told. */
  readonly consumer?: string;
  /** Ends it: what was not begun goes back, and what is under way is waited for. */
  readonly signal?: AbortSignal;
  /** Called with why the server cannot be asked; it is asked again soon. */
  readonly disconnected?: (error: EvregError) => void;
}

/** What is reported of an attempt beside its outcome. */
export interface ConsumeReport {
  /** The status that a program behind the consumer answered. */
  readonly status?: number;
  readonly errorCode?: ConsumerErrorCode;
  /** The reason as text; the first 1 KiB is kept. */
  readonly reason?: string;
}

export interface ConsumedDelivery extends PulledDelivery {
  /** Aborted once somebody else may have it: its lease could not be extended in time. */
  readonly signal: AbortSignal;
  /** The body, parsed. */
  value(): unknown;
  /** It is done. Resolves when that is stored; `fenced` if somebody else has it by now. */
  done(report?: Omit<ConsumeReport, "errorCode">): Promise<FinishedPull>;
  /** The attempt failed; the server sees to retries. */
  fail(reason: string, report?: Omit<ConsumeReport, "reason">): Promise<FinishedPull>;
  /** It was not begun: it is due again at once, and no attempt is recorded. */
  release(): Promise<FinishedPull>;
  /** Does the work: done when it returns, failed with its message when it throws. Never rejects because of the work. */
  run(work: () => unknown): Promise<FinishedPull>;
}

type Subscriptions = Pick<SubscriptionsPort, "claim" | "finish">;

const MAX_WAIT_MS = 5_000;
const PULL_STATUS = /^[1-5]\d\d$/;
/** Leases are extended when so much of them is over. */
const EXTEND_AFTER = 1 / 3;
/** How long after the end a claim may still answer: what it brings goes back, and does not wait for its lease to end. */
const LAST_CLAIM_MS = 250;
/** After the end, what cannot be reported is left to its lease. */
const LAST_TRIES_MS = 5_000;

/**
 * The deliveries of a pull subscription, one after the other; no more than `concurrency` are under way at a time. It goes on
 * when the server restarts. Whoever leaves the loop, or throws out of it, fails the delivery that was not done by then.
 * @param subscription its ID, a number
 * @throws EvregError what no repetition would mend: `unauthorized`, `forbidden`, `not_found`, `invalid`
 */
export async function* consume(
  evreg: { readonly subscriptions: Subscriptions },
  subscription: number,
  options: ConsumeOptions = {},
): AsyncGenerator<ConsumedDelivery, void, void> {
  if (!Number.isSafeInteger(subscription)) {
    const rule =
      "must be the ID of the subscription, a number such as 7, which evreg subscriptions list shows";
    throw invalidField("subscription", rule, subscription);
  }
  const consumer = new Consumer(evreg.subscriptions, subscription, options);
  let isLeft = true;
  try {
    for (let next = await consumer.next(); next !== undefined; next = await consumer.next()) yield next;
    isLeft = false;
  } finally {
    await consumer.close(isLeft);
  }
}

interface Held {
  readonly delivery: PulledDelivery;
  readonly startedMs: number;
  isRunning: boolean;
  readonly lost: AbortController;
  /** Its result is on its way. */
  settled: Promise<FinishedPull> | undefined;
}

interface Pending {
  readonly result: PullResult;
  readonly resolve: (finished: FinishedPull) => void;
}

class Consumer {
  readonly #subscriptions: Subscriptions;
  readonly #id: number;
  readonly #options: ConsumeOptions;
  readonly #concurrency: number;
  readonly #leaseMs: number;
  /** Claimed and not begun. */
  readonly #buffered: PulledDelivery[] = [];
  #bufferedUntilMs = 0;
  readonly #held = new Set<Held>();
  readonly #pending: Pending[] = [];
  #reporting: Promise<void> | undefined;
  /** Resolves when one under way has ended, and at the end. */
  #freed = Promise.withResolvers<void>();
  readonly #extending: NodeJS.Timeout;
  #endsAtMs = Infinity;
  /** Ends the claim under way, a moment after the end. */
  readonly #claimEnd = new AbortController();

  constructor(subscriptions: Subscriptions, id: number, options: ConsumeOptions) {
    this.#subscriptions = subscriptions;
    this.#id = id;
    this.#options = options;
    this.#concurrency = Math.max(1, Math.min(options.concurrency ?? 1, PULL_LIMITS.claimMax));
    this.#leaseMs = options.leaseMs ?? PULL_LIMITS.leaseDefaultMs;
    options.signal?.addEventListener("abort", this.#onEnd);
    this.#extending = setInterval(() => this.#extend(), this.#leaseMs * EXTEND_AFTER).unref();
  }

  /** `undefined` at the end. */
  async next(): Promise<ConsumedDelivery | undefined> {
    while (this.#held.size >= this.#concurrency && !this.#isEnded) await this.#freed.promise;
    while (!this.#isEnded) {
      if (this.#buffered.length === 0) await this.#claim();
      if (this.#isEnded) break;
      const delivery = this.#buffered.shift();
      if (delivery === undefined) continue;
      if (performance.now() < this.#bufferedUntilMs) return this.#begin(delivery);
      // It was not asked for in time: somebody else may have it.
      await this.#report({ lease: delivery.lease, outcome: "released" });
    }
    return undefined;
  }

  readonly #onEnd = (): void => {
    this.#free();
    setTimeout(() => this.#claimEnd.abort(), LAST_CLAIM_MS).unref();
  };

  get #isEnded(): boolean {
    return this.#options.signal?.aborted === true;
  }

  /**
   * Gives back what was not begun, and waits for the rest.
   * @param isLeft whether the loop was left, so that nobody ends what it had begun
   */
  async close(isLeft: boolean): Promise<void> {
    for (const { lease } of this.#buffered.splice(0)) void this.#report({ lease, outcome: "released" });
    for (const held of this.#held) {
      if (!isLeft || held.isRunning || held.settled !== undefined) continue;
      const reason = "The consumer's loop ended before this delivery was done.";
      void this.#settle(held, { outcome: "failed", reason });
    }
    while (this.#held.size > 0) await this.#freed.promise;
    this.#endsAtMs = performance.now() + LAST_TRIES_MS;
    await this.#reporting;
    clearInterval(this.#extending);
    this.#options.signal?.removeEventListener("abort", this.#onEnd);
  }

  #free(): void {
    this.#freed.resolve();
    this.#freed = Promise.withResolvers<void>();
  }

  async #claim(): Promise<void> {
    const { signal, consumer, disconnected } = this.#options;
    const claim = {
      max: this.#concurrency - this.#held.size,
      wait_ms: PULL_LIMITS.waitMaxMs,
      lease_ms: this.#leaseMs,
      ...(consumer === undefined ? {} : { consumer }),
    };
    const backoff = new Backoff(MAX_WAIT_MS);
    while (!this.#isEnded) {
      try {
        const { data } = await this.#subscriptions.claim(this.#id, claim, this.#claimEnd.signal);
        this.#buffered.push(...data);
        this.#bufferedUntilMs = performance.now() + this.#leaseMs;
        return;
      } catch (error) {
        if (this.#isEnded) return;
        if (!(error instanceof EvregError) || !isPassing(error)) throw error;
        disconnected?.(error);
        await backoff.pause(error, signal);
      }
    }
  }

  #begin(delivery: PulledDelivery): ConsumedDelivery {
    const lost = new AbortController();
    const startedMs = performance.now();
    const held: Held = { delivery, startedMs, isRunning: false, lost, settled: undefined };
    this.#held.add(held);
    const done: ConsumedDelivery["done"] = (report) =>
      this.#settle(held, { outcome: "delivered", ...report });
    const fail: ConsumedDelivery["fail"] = (reason, { status, errorCode } = {}) =>
      this.#settle(held, {
        outcome: "failed",
        reason,
        ...(status === undefined ? {} : { status }),
        ...(errorCode === undefined ? {} : { error_code: errorCode }),
      });
    return {
      ...delivery,
      signal: lost.signal,
      value: () => parseText(delivery.body),
      done,
      fail,
      release: () => this.#settle(held, { outcome: "released" }),
      async run(work) {
        held.isRunning = true;
        try {
          await work();
        } catch (error) {
          return fail(messageOf(error));
        }
        return done();
      },
    };
  }

  /** Settles a delivery by the first of several results. */
  #settle(held: Held, result: Omit<PullResult, "lease">): Promise<FinishedPull> {
    held.settled ??= this.#end(held, result);
    return held.settled;
  }

  async #end(held: Held, result: Omit<PullResult, "lease">): Promise<FinishedPull> {
    const { lease } = held.delivery;
    const durationMs = Math.min(Math.round(performance.now() - held.startedMs), PULL_LIMITS.durationMaxMs);
    const finished = await this.#report({ lease, duration_ms: durationMs, ...takenBy(result) });
    this.#held.delete(held);
    this.#free();
    return finished;
  }

  #extend(): void {
    for (const held of this.#held) if (held.settled === undefined) void this.#extendOne(held);
  }

  async #extendOne(held: Held): Promise<void> {
    const { lease } = held.delivery;
    const { outcome } = await this.#report({ lease, outcome: "extended", lease_ms: this.#leaseMs });
    if (outcome !== "stored" && held.settled === undefined)
      held.lost.abort(new Error("The lease of this delivery has ended."));
  }

  /** Reports it with others that wait, in one request after the other, until it is stored. */
  #report(result: PullResult): Promise<FinishedPull> {
    return new Promise((resolve) => {
      this.#pending.push({ result, resolve });
      this.#reporting ??= this.#reportAll();
    });
  }

  async #reportAll(): Promise<void> {
    let backoff = new Backoff(MAX_WAIT_MS);
    // What is settled in this turn goes with the first.
    await Promise.resolve();
    while (this.#pending.length > 0) {
      const batch = this.#pending.slice(0, PULL_LIMITS.results);
      try {
        const results = batch.map(({ result }) => result);
        const { data } = await this.#subscriptions.finish(this.#id, { results });
        this.#pending.splice(0, batch.length);
        for (const [index, finished] of data.entries()) batch[index]!.resolve(finished);
        backoff = new Backoff(MAX_WAIT_MS);
      } catch (error) {
        if (error instanceof EvregError && isPassing(error) && performance.now() <= this.#endsAtMs) {
          this.#options.disconnected?.(error);
          await backoff.pause(error);
        } else {
          this.#pending.splice(0, batch.length);
          for (const { result, resolve } of batch) resolve(unreported(result));
        }
      }
    }
    this.#reporting = undefined;
  }
}

/** A result as the server takes it. With one that it refuses the delivery would come again for ever, and count as no attempt. */
function takenBy({ reason, status, ...result }: Omit<PullResult, "lease">): Omit<PullResult, "lease"> {
  const isStatus = status !== undefined && PULL_STATUS.test(String(status));
  return {
    ...result,
    ...(isStatus ? { status } : {}),
    ...(reason === undefined ? {} : { reason: reason.slice(0, PULL_LIMITS.reasonLength).toWellFormed() }),
  };
}

/** Nobody knows what became of it, so its lease decides. */
function unreported({ lease }: PullResult): FinishedPull {
  return { lease, outcome: "fenced", status: null, expires_at: null };
}
