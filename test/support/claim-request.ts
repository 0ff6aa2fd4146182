import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import type { Claim, ClaimRequest } from "../../src/store/queue.ts";

interface Given {
  readonly nowMs: number;
  /** Most in all; 100 unless given. */
  readonly limit?: number;
  readonly leaseMs?: number;
  /** Most that each subscription may have leased; 100 unless given. */
  readonly most?: number;
  /** What some have leased already, by their rowids. */
  readonly leased?: ReadonlyMap<number, number>;
}

/** A claim by one who treats all subscriptions alike. */
export function claimRequest(given: Given): ClaimRequest {
  const { nowMs, limit = 100, leaseMs = 30_000, most = 100, leased = new Map<number, number>() } = given;
  const share = (count: number): ClaimRequest["defaultQuota"] => ({
    leased: count,
    capacity: Math.max(0, most - count),
    tier: 0,
  });
  return {
    nowMs,
    leaseMs,
    tiers: [{ maxClaims: limit, isNewestFirst: false }],
    maxPayloadBytes: 64 * 1024 * 1024,
    quotas: [...leased].map(([id, count]) => [id, share(count)]),
    defaultQuota: share(0),
  };
}

/** A delivery as a claim brings it, for parts of the engine that nothing is stored behind. */
export function claimOf(
  deliveryId: number,
  subscriptionId: number,
  { payload = new Uint8Array(10), settings = NO_SETTINGS }: MadeClaim = {},
): Claim {
  const names = { application: "a", name: "s", handler: "https://a.example/", secret: "s", maxRetries: 5 };
  return {
    deliveryId,
    claimId: 1,
    attempt: 1,
    failures: 0,
    event: { eventId: 1, action: "a", payload, timestampedMs: 0 },
    subscription: { ...names, subscriptionId, settings },
  };
}

interface MadeClaim {
  readonly payload?: Uint8Array;
  readonly settings?: Claim["subscription"]["settings"];
}
