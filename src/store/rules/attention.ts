import { subscriptionState } from "../../domain/words/attention.ts";
import type { Attention, AttentionReason } from "../../domain/operations.ts";
import { ATTENTION_REASONS } from "../../model/operations.ts";
import type { Subscription } from "../../domain/subscription.ts";

/**
 * So long something is due before it counts as unclaimed, as consumers may be about to claim it. It is more than the time
 * between two notes of a last claim.
 */
const UNCLAIMED_MS = 300_000;

/** What a store knows of a subscription besides. Times are ISO 8601; `null` for none. */
export interface SubscriptionCondition {
  readonly lastFailure: string | null;
  /** The time since which nobody has claimed what is due of a pull subscription. */
  readonly unclaimedSince: string | null;
}

export interface AttentionCause {
  readonly reason: AttentionReason;
  readonly since: string | null;
  readonly more?: Partial<Attention>;
}

/** Answers why a subscription needs a person. Whether a paused one misses anything is not said by its state. */
export function causeOf(
  subscription: Parameters<typeof subscriptionState>[0],
  { lastFailure, unclaimedSince }: SubscriptionCondition,
  nowMs: number,
): AttentionCause | undefined {
  const { disabled_reason: error, blocked_by, failing_since: failing } = subscription;
  const isUnclaimed = unclaimedSince !== null && Date.parse(unclaimedSince) <= nowMs - UNCLAIMED_MS;
  const reason = subscriptionState(subscription, nowMs, isUnclaimed);
  switch (reason) {
    case "deactivated":
      return { reason, since: lastFailure, more: { error } };
    case "blocked":
      return { reason, since: failing, more: { delivery_id: blocked_by } };
    case "failing":
      return { reason, since: failing };
    case "unclaimed":
      return { reason, since: unclaimedSince };
    case "slowed":
      return { reason, since: null };
    case "paused":
    case "active":
      return undefined;
    default:
      return reason satisfies never;
  }
}

/** A pull subscription that goes by itself within a day is there for a while only. */
const LEFT = { expiresWithinMs: 86_400_000, unclaimedMs: 120_000 };

/** Whether nobody has to do anything about it any more, such as that of a closed `evreg listen`. */
export function isLeft(
  { mode, expires_after_ms: expiresMs, last_claim_at: claimed, timestamped }: Subscription,
  nowMs: number,
): boolean {
  const isTemporary = mode === "pull" && expiresMs !== null && expiresMs <= LEFT.expiresWithinMs;
  return isTemporary && Date.parse(claimed ?? timestamped) <= nowMs - LEFT.unclaimedMs;
}

/** Orders causes: the gravest first, and of each kind what has lasted longest. One that has no known start comes last. */
export function byGravity(one: AttentionCause, other: AttentionCause): number {
  const rank = ({ reason }: AttentionCause): number => ATTENTION_REASONS.indexOf(reason);
  const start = ({ since }: AttentionCause): number => (since === null ? Infinity : Date.parse(since));
  return rank(one) - rank(other) || (start(one) === start(other) ? 0 : start(one) - start(other));
}
