import { type Attention, ATTENTION_REASONS, type AttentionReason } from "../../domain/operations.ts";

/**
 * So long something is due before it counts as unclaimed, as consumers may be about to claim it. It is more than the time
 * between two notes of a last claim.
 */
const UNCLAIMED_MS = 300_000;

/** What a store knows of a subscription. Times are milliseconds since the epoch; `null` for none. */
export interface SubscriptionCondition {
  readonly isActive: boolean;
  /** Why evreg deactivated it; `null` where a person paused it. */
  readonly disabledReason: string | null;
  readonly failingSinceMs: number | null;
  readonly lastFailureMs: number | null;
  /** When the subscription's wait ends; 0 where it waits for nothing. */
  readonly waitEndMs: number;
  /** The delivery that it blocks for. */
  readonly blockedBy: number | null;
  /** Since when nobody has claimed what is due of a pull subscription. */
  readonly unclaimedSinceMs: number | null;
}

/** Why something needs a person, and since when. */
export interface AttentionCause {
  readonly reason: AttentionReason;
  readonly sinceMs: number | null;
  readonly more?: Partial<Attention>;
}

/** Answers the gravest of what a subscription is now. Whether a paused one misses anything is not said by that. */
export function causeOf(subscription: SubscriptionCondition, nowMs: number): AttentionCause | undefined {
  const { disabledReason: error, blockedBy, failingSinceMs, unclaimedSinceMs, waitEndMs } = subscription;
  if (!subscription.isActive) {
    if (error === null) return undefined;
    return { reason: "deactivated", sinceMs: subscription.lastFailureMs, more: { error } };
  }
  if (blockedBy !== null) {
    return { reason: "blocked", sinceMs: failingSinceMs, more: { delivery_id: blockedBy } };
  }
  if (failingSinceMs !== null) return { reason: "failing", sinceMs: failingSinceMs };
  if (unclaimedSinceMs !== null && unclaimedSinceMs <= nowMs - UNCLAIMED_MS) {
    return { reason: "unclaimed", sinceMs: unclaimedSinceMs };
  }
  return waitEndMs > nowMs ? { reason: "slowed", sinceMs: null } : undefined;
}

/** Orders causes: the gravest first, and of each kind what has lasted longest. One that has no known start comes last. */
export function byGravity(one: AttentionCause, other: AttentionCause): number {
  const rank = ({ reason }: AttentionCause): number => ATTENTION_REASONS.indexOf(reason);
  const start = ({ sinceMs }: AttentionCause): number => sinceMs ?? Number.MAX_SAFE_INTEGER;
  return rank(one) - rank(other) || start(one) - start(other);
}
