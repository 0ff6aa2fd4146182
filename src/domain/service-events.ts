import type { Schemata } from "./action.ts";
import type { JsonSchema } from "./request.ts";

// What evreg publishes about itself: actions like any other to those who read and subscribe, that nobody else can create,
// change or publish. Payloads hold no more of an address than its host, as the rest may be a secret.

/** The application that owns them. */
export const SERVICE_APPLICATION = "evreg";

const ID = { type: "integer", minimum: 1 } as const;
const TEXT = { type: "string" } as const;
const TIME = { type: "string", format: "date-time" } as const;

const SUBSCRIPTION = { subscription_id: ID, application: TEXT, subscription: TEXT, action: TEXT } as const;
const HANDLER_HOST = {
  type: "string",
  description: "Host of the subscription's handler, with the port where the URL names one.",
} as const;

/** What is reported of a delivery, whatever its state. */
const DELIVERY = {
  delivery_id: ID,
  event_id: ID,
  ...SUBSCRIPTION,
  handler_host: HANDLER_HOST,
  attempts: { ...ID, description: "How often it was tried." },
  last_error: { ...TEXT, description: "HTTP and the status of the last attempt, or its error code." },
  published_at: { ...TIME, description: "When the event was published." },
} as const;

/**
 * The schema of each. A data file with an older one gets this as the next revision when it is opened, so a change must be
 * backward compatible for consumers.
 */
export const SERVICE_EVENT_SCHEMAS = {
  "evreg.delivery.failed": closed("A delivery failed for good.", { ...DELIVERY, failed_at: TIME }),
  "evreg.subscription.blocked": closed(
    "An ordered subscription waits for a delivery that has used up its retries.",
    {
      ...DELIVERY,
      delivery_id: { ...ID, description: "It is tried on; those behind it wait." },
      blocked_at: TIME,
    },
  ),
  "evreg.subscription.deactivated": closed(
    "evreg deactivated a subscription. A pause by a person is not reported.",
    {
      ...SUBSCRIPTION,
      handler_host: HANDLER_HOST,
      reason: { ...TEXT, description: "Its disabled_reason." },
      deactivated_at: TIME,
    },
  ),
} as const;

export type ServiceEventName = keyof typeof SERVICE_EVENT_SCHEMAS;
export const SERVICE_EVENT_NAMES = Object.keys(SERVICE_EVENT_SCHEMAS) as readonly ServiceEventName[];

/** All members are required and there are no others. */
function closed(
  description: string,
  properties: Readonly<Record<string, JsonSchema>>,
): Schemata & { readonly properties: Readonly<Record<string, JsonSchema>> } {
  return {
    $schema: "http://json-schema.org/draft-07/schema#",
    description,
    type: "object",
    properties,
    required: Object.keys(properties),
    additionalProperties: false,
  };
}
