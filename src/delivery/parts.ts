import type { DeliveryConfig } from "../config/keys.ts";
import type { DeliveryResult } from "../domain/stream.ts";
import type { EngineCounts } from "../metrics/counters.ts";
import type { Clock, Random } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import type { OffThreadValidator } from "../schema/validate/compile.ts";
import type { DeliveryQueue } from "../store/queue.ts";
import type { StoreNode } from "../store/store.ts";

/** What the engine is given. Each part of it asks for what it needs of this. */
export interface EngineParts {
  readonly store: DeliveryQueue;
  readonly node: StoreNode;
  readonly clock: Clock;
  readonly random: Random;
  readonly logger: Logger;
  readonly config: DeliveryConfig;
  readonly version: string;
  readonly longChecks: OffThreadValidator;
  /** Goes on over all starts and stops. */
  readonly counts: EngineCounts;
  /** Called with each result that was stored. */
  readonly onResult?: (result: DeliveryResult) => void;
  /** What this service listens on: nothing is sent there on this machine. */
  readonly ownPorts: readonly number[];
  /** PEM of certificate authorities to trust beside those that Node trusts. */
  readonly ca?: string | undefined;
}
