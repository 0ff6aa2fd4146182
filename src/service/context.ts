import type { DeliveryConfig, LimitsConfig } from "../config/schema.ts";
import type { Subscription } from "../domain/subscription.ts";
import type { PublishCounts } from "../metrics/counters.ts";
import type { Clock, Random } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { Store } from "../store/store.ts";
import type { ActionCache } from "./action-cache.ts";
import type { TokenCache } from "./auth.ts";
import type { StoredEventValidator, PayloadValidator } from "./payload-validator.ts";
import type { SchemaTasks } from "./schema-tasks.ts";

/** What all parts of the service share. */
export interface ServiceContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly limits: LimitsConfig;
  readonly delivery: Pick<DeliveryConfig, "allowHttp" | "allowNetworks">;
  readonly actions: ActionCache;
  readonly storedEvents: StoredEventValidator;
  readonly payloads: PayloadValidator;
  readonly schemaTasks: SchemaTasks;
  readonly tokens: TokenCache;
  readonly counts: PublishCounts;
  readonly signals: DeliverySignals;
}

/** What the service reports to the delivery engine and to replays, where these run. */
export interface DeliverySignals {
  /** Something may be due now. */
  deliveriesDue(): void;
  /** A subscription as it is after a change: no attempt starts any more by what it was before. */
  subscriptionChanged(subscription: Subscription): void;
  /** A replay was started, or one may continue. */
  replaysChanged(): void;
}
