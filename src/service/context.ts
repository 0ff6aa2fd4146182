import type { Config, DeliveryConfig } from "../config/keys.ts";
import type { HandlerTest } from "../domain/webhook.ts";
import type { Health } from "../domain/operations.ts";
import type { ConsumerClaim, FinishedPull, PulledDelivery, PullResult } from "../domain/pull.ts";
import type { Subscription } from "../domain/subscription.ts";
import type { PublishCounts } from "../metrics/counters.ts";
import type { Clock, Random } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { Claim, ClaimedSubscription, RecordClaim } from "../store/queue.ts";
import type { Store } from "../store/store.ts";
import type { ActionCache } from "./compiled-actions.ts";
import type { PayloadValidator } from "./payload-checks.ts";
import type { TokenCache } from "./tokens.ts";
import type { SchemaChecks } from "./schema-checks.ts";
import type { Feed } from "./feed.ts";
import type { StoredEvents } from "./stored-events.ts";
import type { ValidationThread } from "./validation-thread.ts";

/** What the service is given. */
export interface ServiceParts {
  readonly store: Store;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly limits: Config["limits"];
  readonly delivery: Pick<
    DeliveryConfig,
    "allowHttp" | "allowNetworks" | "maxRetries" | "retrySchedule" | "disableAfter"
  >;
  readonly schemaProducts: ValidationThread;
  readonly counts: PublishCounts;
  readonly background: Background;
}

/** That, and what the service makes itself. */
export interface ServiceContext extends ServiceParts {
  readonly actions: ActionCache;
  readonly storedEvents: StoredEvents;
  readonly payloads: PayloadValidator;
  readonly schemaChecks: SchemaChecks;
  readonly tokens: TokenCache;
  /** Takes what happens, for streams. */
  readonly feed: Feed;
}

/** What a server runs beside the service, and the service wakes. A command that holds the data folder runs none of it. */
export interface Background {
  engine?: {
    state(): Health["engine"];
    /** @param changed a subscription after its change, or that was deleted: no attempt starts by its settings from before */
    wake(changed?: Subscription): void;
    /** What an event of the action may lease as it is recorded; to be followed by `recorded`. */
    claimOf(action: string): RecordClaim | undefined;
    /** Sends one signed request outside the queue. */
    test(request: {
      readonly subscription: ClaimedSubscription;
      readonly action: string;
      readonly payload: Uint8Array;
      readonly caller: unknown;
    }): Promise<HandlerTest>;
    /** @param claims what it has leased; none if it was refused */
    recorded(claim: RecordClaim, claims: readonly Claim[]): void;
    /** What consumers of pull subscriptions call. */
    readonly pulls: {
      /** Leases deliveries, or waits for the first. */
      claim(request: ConsumerClaim, signal?: AbortSignal): Promise<readonly PulledDelivery[]>;
      /** How many wait for deliveries of a subscription. */
      waitingFor(subscription: number): number;
      /** Stores what became of some of them. */
      finish(from: Subscription, results: readonly PullResult[]): Promise<readonly FinishedPull[]>;
    };
  };
  replays?: { wake(): void };
}
