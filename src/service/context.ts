import type { DeliveryConfig, LimitsConfig } from "../config/schema.ts";
import type { Subscription } from "../domain/subscription.ts";
import type { PublishCounts } from "../metrics/counters.ts";
import type { Clock, Random } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { Store } from "../store/store.ts";
import type { ActionCache } from "./action-cache.ts";
import type { TokenCache } from "./auth.ts";
import type { EventChecks, PayloadChecks } from "./payload-validator.ts";
import type { SchemaTasks } from "./schema-tasks.ts";

/** What the parts of the service share, whoever is asking. */
export interface ServiceContext {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly limits: LimitsConfig;
  readonly delivery: Pick<DeliveryConfig, "allowHttp" | "allowNetworks">;
  readonly actions: ActionCache;
  readonly eventChecks: EventChecks;
  readonly payloadChecks: PayloadChecks;
  readonly schemaTasks: SchemaTasks;
  readonly tokens: TokenCache;
  readonly counts: PublishCounts;
  /** Tells the engine that something may be due, or how a subscription is after a change. */
  readonly wake: (changed?: Subscription) => void;
  /** Tells that a replay was begun, or that one may go on. */
  readonly wakeReplays: () => void;
}
