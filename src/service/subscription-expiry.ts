import type { Subscription } from "../domain/subscription.ts";
import type { SubscriptionsPort } from "../evreg.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { StoreNode } from "../store/store.ts";
import { Rounds } from "./rounds.ts";

interface ExpiryOptions {
  /** The port of somebody who may delete all. */
  readonly evreg: { readonly subscriptions: Pick<SubscriptionsPort, "list" | "delete"> };
  readonly node: Pick<StoreNode, "hasDuties">;
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Consumers that could not claim while the server was stopped have so long to come back. */
const GRACE_MS = 3_600_000;
const ROUND_EVERY_MS = 5 * 60_000;

/** Deletes pull subscriptions from which nobody has claimed for their `expires_after_ms`. */
export function createSubscriptionExpiry({ evreg, node, clock, logger }: ExpiryOptions): Rounds {
  return new Rounds({
    clock,
    logger,
    waitMs: (round) => (round === 0 ? GRACE_MS : ROUND_EVERY_MS),
    async work() {
      if (!node.hasDuties()) return;
      for (const one of (await evreg.subscriptions.list()).data) {
        if (!isExpired(one, clock.now())) continue;
        await evreg.subscriptions.delete(one.rowid);
        const { rowid, application, subscription, last_claim_at: lastClaim } = one;
        logger.info(
          { subscription: rowid, name: `${application}/${subscription}`, lastClaim },
          "Deleted a subscription from which nobody has claimed for its expires_after_ms.",
        );
      }
    },
    failed: "Looking for expired subscriptions failed; it is tried again in a while.",
  });
}

function isExpired(
  { expires_after_ms: afterMs, last_claim_at, timestamped }: Subscription,
  nowMs: number,
): boolean {
  return afterMs !== null && nowMs - Date.parse(last_claim_at ?? timestamped) >= afterMs;
}
