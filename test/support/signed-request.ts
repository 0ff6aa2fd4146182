import { buildRequest } from "../../src/delivery/attempt.ts";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";

interface SignedDelivery {
  readonly secret: string;
  /** The one before, while a rotation's overlap lasts. */
  readonly previousSecret?: string | undefined;
  readonly bearer?: string | null;
  readonly eventId?: number;
  readonly subscriptionId?: number;
  readonly action?: string;
  readonly payload?: string | Uint8Array;
  readonly timestampedMs?: number;
  readonly attempt?: number;
  readonly nowMs?: number;
  readonly version?: string;
}

/** What the engine sends for a delivery. */
export function signedRequest(delivery: SignedDelivery) {
  const { secret, previousSecret, bearer, eventId = 42, subscriptionId = 7, attempt = 1 } = delivery;
  const { action = "user.created", payload = '{"name":"Zoë"}', nowMs = Date.now() } = delivery;
  const { timestampedMs = nowMs, version = "1.2.3" } = delivery;
  const request = buildRequest(
    version,
    {
      event: { eventId, action, payload: Buffer.from(payload), timestampedMs },
      subscription: {
        subscriptionId,
        application: "a",
        name: "s",
        handler: "https://a.example/",
        maxRetries: 5,
        secret,
        ...(previousSecret === undefined ? {} : { previous: { secret: previousSecret, untilMs: Infinity } }),
        ...(bearer === undefined ? {} : { bearer }),
        settings: NO_SETTINGS,
      },
      attempt,
    },
    nowMs,
  );
  if (typeof request === "string") throw new Error(request);
  return request;
}
