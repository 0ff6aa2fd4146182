import type { Schemata } from "./action.ts";
import { type Replay, REPLAY_SELECTIONS, type ReplayStatus } from "./replay.ts";

// What evreg publishes about itself: actions like any other to those who read and subscribe, that nobody else can create,
// change or publish. Payloads hold no more of an address than its host, as the rest may be a secret.

/** The application that owns them. */
export const SERVICE_APPLICATION = "evreg";

interface ReportedSubscription {
  readonly subscription_id: number;
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
}

/** What is reported of a delivery, whatever its state. */
interface ReportedDelivery extends ReportedSubscription {
  readonly delivery_id: number;
  readonly event_id: number;
  readonly handler_host: string;
  readonly attempts: number;
  readonly last_error: string;
  readonly published_at: string;
}

/** The payload of each. Times are ISO 8601 UTC. */
export interface ServiceEventPayloads {
  "evreg.delivery.failed": ReportedDelivery & { readonly failed_at: string };
  "evreg.subscription.blocked": ReportedDelivery & { readonly blocked_at: string };
  "evreg.subscription.deactivated": ReportedSubscription & {
    readonly handler_host: string;
    readonly reason: string;
    readonly deactivated_at: string;
  };
  "evreg.replay.finished": ReportedSubscription &
    Pick<Replay, "selection" | "from" | "to" | "reason" | "total" | "queued" | "skipped"> & {
      readonly replay_id: number;
      readonly status: Exclude<ReplayStatus, "running">;
      readonly started_at: string;
      readonly finished_at: string;
    };
}
export type ServiceEventName = keyof ServiceEventPayloads;

const ID = { type: "integer", minimum: 1 };
const COUNT = { type: "integer", minimum: 0 };
const TEXT = { type: "string" };
const TIME = { type: "string", format: "date-time" };

const SUBSCRIPTION = { subscription_id: ID, application: TEXT, subscription: TEXT, action: TEXT };
const HANDLER_HOST = {
  type: "string",
  description: "Host of the subscription's handler, with the port where the URL names one.",
};

const DELIVERY = {
  delivery_id: ID,
  event_id: ID,
  ...SUBSCRIPTION,
  handler_host: HANDLER_HOST,
  attempts: { ...ID, description: "How often it was tried." },
  last_error: { ...TEXT, description: "HTTP and the status of the last attempt, or its error code." },
  published_at: { ...TIME, description: "When the event was published." },
};

/**
 * The schema of each. A data file with an older one gets this as the next revision when it is opened, so a change must be
 * backward compatible for consumers.
 */
export const SERVICE_EVENT_SCHEMAS: { readonly [N in ServiceEventName]: Schemata } = {
  "evreg.delivery.failed": closed<"evreg.delivery.failed">("A delivery failed for good.", {
    ...DELIVERY,
    failed_at: TIME,
  }),
  "evreg.subscription.blocked": closed<"evreg.subscription.blocked">(
    "An ordered subscription waits for a delivery that has used up its retries.",
    {
      ...DELIVERY,
      delivery_id: { ...ID, description: "It is tried on; those behind it wait." },
      blocked_at: TIME,
    },
  ),
  "evreg.subscription.deactivated": closed<"evreg.subscription.deactivated">(
    "evreg deactivated a subscription. A pause by a person is not reported.",
    {
      ...SUBSCRIPTION,
      handler_host: HANDLER_HOST,
      reason: { ...TEXT, description: "Its disabled_reason." },
      deactivated_at: TIME,
    },
  ),
  "evreg.replay.finished": closed<"evreg.replay.finished">("A replay has ended.", {
    replay_id: ID,
    ...SUBSCRIPTION,
    selection: { enum: REPLAY_SELECTIONS },
    from: TIME,
    to: TIME,
    status: { enum: ["done", "cancelled", "failed"] },
    reason: { type: ["string", "null"], description: "Why it ended before it was done." },
    total: {
      ...COUNT,
      type: ["integer", "null"],
      description: "null when it ended before they were counted.",
    },
    queued: COUNT,
    skipped: COUNT,
    started_at: TIME,
    finished_at: TIME,
  }),
};

export const SERVICE_EVENT_NAMES = Object.keys(SERVICE_EVENT_SCHEMAS) as readonly ServiceEventName[];

/** All members are required and there are no others. */
function closed<N extends ServiceEventName>(
  description: string,
  properties: Record<keyof ServiceEventPayloads[N], Schemata>,
): Schemata {
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    description,
    type: "object",
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  };
}
