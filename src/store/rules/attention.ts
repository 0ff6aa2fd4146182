import { gravestState } from "../../domain/attention.ts";
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

/** Answers why a subscription needs a person. Whether a paused one misses anything is not said by its state. */
export function causeOf(subscription: SubscriptionCondition, nowMs: number): AttentionCause | undefined {
  const { disabledReason: error, blockedBy, failingSinceMs, unclaimedSinceMs } = subscription;
  const reason = gravestState({
    active: subscription.isActive,
    isDeactivated: error !== null,
    isBlocked: blockedBy !== null,
    isFailing: failingSinceMs !== null,
    isUnclaimed: unclaimedSinceMs !== null && unclaimedSinceMs <= nowMs - UNCLAIMED_MS,
    isSlowed: subscription.waitEndMs > nowMs,
  });
  switch (reason) {
    case "deactivated":
      return { reason, sinceMs: subscription.lastFailureMs, more: { error } };
    case "blocked":
      return { reason, sinceMs: failingSinceMs, more: { delivery_id: blockedBy } };
    case "failing":
      return { reason, sinceMs: failingSinceMs };
    case "unclaimed":
      return { reason, sinceMs: unclaimedSinceMs };
    case "slowed":
      return { reason, sinceMs: null };
    case "paused":
    case "active":
      return undefined;
    default:
      return reason satisfies never;
  }
}

/** Orders causes: the gravest first, and of each kind what has lasted longest. One that has no known start comes last. */
export function byGravity(one: AttentionCause, other: AttentionCause): number {
  const rank = ({ reason }: AttentionCause): number => ATTENTION_REASONS.indexOf(reason);
  const start = ({ sinceMs }: AttentionCause): number => sinceMs ?? Number.MAX_SAFE_INTEGER;
  return rank(one) - rank(other) || start(one) - start(other);
}
