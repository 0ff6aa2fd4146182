import type { AttemptErrorCode } from "../domain/delivery.ts";
import { invalidField } from "../domain/error.ts";
import {
  type FinishedPull,
  leaseText,
  parseLease,
  PULL_LIMITS,
  type PulledDelivery,
  type PullResult,
} from "../domain/pull.ts";
import type { Subscription } from "../domain/subscription.ts";
import { toIso } from "../runtime/clock.ts";
import { eventLoop } from "../runtime/yielding.ts";
import type { AttemptResult, Claim, LeasedAttempt } from "../store/queue.ts";
import { buildRequest, withoutAttempt } from "./attempt.ts";
import type { Filters } from "./filters.ts";
import type { EngineParts } from "./parts.ts";
import { redact } from "./redaction.ts";
import { type ShownAttempt, shownOf, statusAfter, type StoreCalls } from "./store-calls.ts";

/** The subscription whose secrets are redacted from what consumers say. */
type Redacted = Parameters<typeof redact>[1];

interface PullParts extends Pick<EngineParts, "store" | "clock" | "random" | "counts" | "version"> {
  readonly calls: StoreCalls;
  readonly filters: Filters;
}

/** A result of an attempt that is under way, with what the store says of that. */
interface HeldResult extends PullResult {
  readonly attempt: LeasedAttempt;
  /** Its place among the results of the request. */
  readonly index: number;
}

/** The attempts that consumers make: what they are given of a claim, and what is made of their results. */
export class PullAttempts {
  readonly #parts: PullParts;

  constructor(parts: PullParts) {
    this.#parts = parts;
  }

  /**
   * Signs what a consumer is to get. What the filter excludes, and what cannot be sent, ends here as it does in the engine.
   * @param isWanted whether somebody still waits; if not, all goes back as if it had never been claimed
   */
  async prepare(
    claims: readonly Claim[],
    nowMs: number,
    leaseMs: number,
    isWanted: () => boolean,
  ): Promise<readonly PulledDelivery[]> {
    const prepared = new Map<Claim, PulledDelivery>();
    const ended: Promise<unknown>[] = [];
    const end = (claim: Claim, result: AttemptResult): void => {
      ended.push(this.#parts.calls.finish(result, shownOf(claim)));
    };
    for (const claim of claims) {
      if (eventLoop.shouldYield()) await eventLoop.yield();
      const isExcluded = isWanted() && !(await this.#parts.filters.passes(claim));
      if (!isWanted()) end(claim, withoutAttempt(claim, "never started", nowMs));
      else if (isExcluded) end(claim, withoutAttempt(claim, "filtered", nowMs));
      else {
        const delivery = this.#deliveryOf(claim, nowMs, nowMs + leaseMs);
        if (typeof delivery === "string") end(claim, this.#unsendable(claim, delivery, nowMs));
        else prepared.set(claim, delivery);
      }
    }
    // The next in an order is given when these are stored.
    await Promise.all(ended.splice(0));
    if (isWanted()) return [...prepared.values()];
    for (const claim of prepared.keys()) end(claim, withoutAttempt(claim, "never started", nowMs));
    await Promise.all(ended);
    return [];
  }

  /**
   * Stores what became of deliveries, or extends their leases.
   * @param from the subscription that gave them
   * @returns an outcome for each, in order
   * @throws EvregError `invalid` for a text that is no lease of this subscription; `unavailable`
   */
  async finish(from: Subscription, results: readonly PullResult[]): Promise<readonly FinishedPull[]> {
    const names = results.map(({ lease }, index) => {
      const parsed = parseLease(lease);
      if (parsed?.subscriptionId === from.rowid) return parsed;
      throw invalidField(`results[${index}].lease`, "is no lease that a claim of this subscription gave");
    });
    const leased = await this.#parts.store.findLeased(from.rowid, names);
    const finished = results.map(({ lease }): FinishedPull => {
      return { lease, outcome: "fenced", status: null, expires_at: null };
    });
    const held = results.flatMap((result, index): HeldResult[] => {
      const attempt = leased[index];
      return attempt === undefined ? [] : [{ ...result, attempt, index }];
    });
    // What ends here is extended no more, in whatever order that is asked for.
    const ends = held.filter(({ outcome }) => outcome !== "extended");
    await this.#finishAll(from, ends, finished);
    const extensions = held.filter(({ outcome }) => outcome === "extended");
    await this.#extendAll(extensions, finished);
    return finished;
  }

  async #finishAll(from: Subscription, ends: readonly HeldResult[], finished: FinishedPull[]): Promise<void> {
    if (ends.length === 0) return;
    const { clock, store, calls, counts } = this.#parts;
    const saysWhy = ends.some(({ reason }) => reason !== undefined);
    const signed = saysWhy ? await store.findSendable(from.rowid) : undefined;
    const nowMs = clock.now();
    const ended = ends.map((result) => this.#resultOf(result, signed, nowMs));
    const shown = ends.map(({ attempt }) => shownOfLease(attempt, from));
    const outcomes = await calls.finishTogether(ended, shown);
    for (const [index, outcome] of outcomes.entries()) {
      const result = ends[index]!;
      if (outcome.kind === "fenced") continue;
      if (result.outcome !== "released") counts.attempted(ended[index]!);
      const status = statusAfter(ended[index]!, result.attempt.failures, outcome);
      finished[result.index] = { lease: result.lease, outcome: "stored", status, expires_at: null };
    }
  }

  async #extendAll(extensions: readonly HeldResult[], finished: FinishedPull[]): Promise<void> {
    if (extensions.length === 0) return;
    const { clock, store } = this.#parts;
    const nowMs = clock.now();
    // The first of several extensions of one lease counts.
    const first = new Map(extensions.toReversed().map((result) => [result.attempt.deliveryId, result]));
    const leases = [...first.values()].map(({ attempt: { deliveryId, claimId }, lease_ms: ms }) => {
      return { deliveryId, claimId, untilMs: nowMs + (ms ?? PULL_LIMITS.leaseDefaultMs) };
    });
    const areHeld = await store.extend(leases);
    for (const [at, { lease, index }] of [...first.values()].entries()) {
      if (areHeld[at] !== true) continue;
      const expires_at = toIso(leases[at]!.untilMs);
      finished[index] = { lease, outcome: "stored", status: "delivering", expires_at };
    }
  }

  /** What the consumer gets; why it can get nothing, where that cannot be read. */
  #deliveryOf(claim: Claim, nowMs: number, untilMs: number): PulledDelivery | AttemptErrorCode {
    const { deliveryId, claimId, attempt, event, subscription } = claim;
    const { subscriptionId } = subscription;
    const request = buildRequest(this.#parts.version, claim, nowMs);
    if (typeof request === "string") return request;
    return {
      lease: leaseText({ subscriptionId, deliveryId, claimId }),
      delivery_id: deliveryId,
      event_id: event.eventId,
      action: event.action,
      attempt,
      headers: request.headers,
      // A payload is stored only if it is UTF-8, so the text has the very bytes.
      body: request.body.toString("utf8"),
      expires_at: toIso(untilMs),
    };
  }

  /** It fails as an attempt, where it can be seen. */
  #unsendable({ deliveryId, claimId }: Claim, errorCode: AttemptErrorCode, nowMs: number): AttemptResult {
    const { random, counts } = this.#parts;
    const jitter = random.fraction();
    const ended = { startedAtMs: nowMs, durationMs: 0, ending: "failed", errorCode, jitter } as const;
    const result = { deliveryId, claimId, ...ended };
    counts.attempted(result);
    return result;
  }

  #resultOf(
    { attempt, ...reported }: HeldResult,
    signed: Redacted | undefined,
    nowMs: number,
  ): AttemptResult {
    const { deliveryId, claimId, claimedMs } = attempt;
    const { outcome, status, error_code: errorCode = "consumer_failed", reason } = reported;
    // The clock may have been set back meanwhile.
    const startedAtMs = Math.min(claimedMs, nowMs);
    const longestMs = Math.min(nowMs - startedAtMs, PULL_LIMITS.durationMaxMs);
    const claim = { deliveryId, claimId, startedAtMs };
    if (outcome === "released") return { ...claim, durationMs: 0, ending: "never started" };
    // Once the subscription is deleted its secrets are gone, and no text is stored that might hold them.
    const text =
      reason === undefined || signed === undefined ? undefined : redact(reason.toWellFormed(), signed);
    // It has no latency: how long it waited for a consumer says nothing about evreg.
    const attempted = {
      ...claim,
      durationMs: Math.min(reported.duration_ms ?? longestMs, longestMs),
      ...(text ? { response: text } : {}),
      ...(status === undefined ? {} : { statusCode: status }),
    };
    if (outcome === "delivered") return { ...attempted, ending: "delivered" };
    // It has failed whatever the status is: a program behind a consumer ends no subscription.
    const failed = { ending: "failed", jitter: this.#parts.random.fraction() } as const;
    return { ...attempted, ...(status === undefined ? { errorCode } : {}), ...failed };
  }
}

function shownOfLease({ eventId, action, ...attempt }: LeasedAttempt, from: Subscription): ShownAttempt {
  const { rowid: subscriptionId, application, subscription: name } = from;
  return { ...attempt, event: { eventId, action }, subscription: { subscriptionId, application, name } };
}
