import { EvregError } from "../domain/error.ts";
import type { Subscription } from "../domain/subscription.ts";
import type { SubscriptionsPort } from "../evreg.ts";
import { type Clock, sleep } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";

interface ExpiryOptions {
  /** With the right to delete all. */
  readonly evreg: { readonly subscriptions: Pick<SubscriptionsPort, "list" | "delete"> };
  readonly clock: Clock;
  readonly logger: Logger;
}

/** Consumers that could not claim while the server was stopped have so long to come back. */
const GRACE_MS = 3_600_000;
const ROUND_EVERY_MS = 5 * 60_000;

/** Deletes pull subscriptions from which nobody has claimed for their `expires_after_ms`. */
export class SubscriptionExpiry {
  readonly #options: ExpiryOptions;
  readonly #stopping = new AbortController();
  #running: Promise<void> | undefined;

  constructor(options: ExpiryOptions) {
    this.#options = options;
  }

  /** A second start changes nothing. */
  start(): void {
    this.#running ??= this.#run();
  }

  /** Resolves when the running round has ended. Safe to call twice. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, logger } = this.#options;
    const { signal } = this.#stopping;
    for (let waitMs = GRACE_MS; !signal.aborted; waitMs = ROUND_EVERY_MS) {
      await sleep(clock, waitMs, signal);
      if (signal.aborted) return;
      try {
        await this.#round();
      } catch (error) {
        // The store has said why in the log.
        if (error instanceof EvregError && error.code === "unavailable") continue;
        logger.error(
          { err: error },
          "Looking for expired subscriptions failed; it is tried again in a while.",
        );
      }
    }
  }

  async #round(): Promise<void> {
    const { evreg, clock, logger } = this.#options;
    const { data } = await evreg.subscriptions.list();
    for (const one of data) {
      if (!isExpired(one, clock.now())) continue;
      await evreg.subscriptions.delete(one.rowid);
      const { rowid, application, subscription, last_claim_at: lastClaim } = one;
      logger.info(
        { subscription: rowid, name: `${application}/${subscription}`, lastClaim },
        "Deleted a subscription from which nobody has claimed for its expires_after_ms.",
      );
    }
  }
}

function isExpired(
  { expires_after_ms: afterMs, last_claim_at, timestamped }: Subscription,
  nowMs: number,
): boolean {
  return afterMs !== null && nowMs - Date.parse(last_claim_at ?? timestamped) >= afterMs;
}
