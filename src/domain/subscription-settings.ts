import type { Schemata } from "./action.ts";
import { invalidField } from "./error.ts";
import { WHOLE_ORDER } from "./order-key.ts";

/** What a subscription has of its own; `null` stands for what all have. */
export interface SubscriptionSettings {
  /** A JSON Schema Draft 7 document: events whose payload does not conform to it are not sent. */
  readonly filter: Schemata | null;
  /** At most so many attempts start in a second. */
  readonly rate_limit: number | null;
  /** At most so many attempts are in flight at a time. */
  readonly max_in_flight: number | null;
  /** The time of one attempt, from looking its host up to the end of the answer. */
  readonly timeout_ms: number | null;
  /** Sent with each delivery. They are shown, so a credential belongs into `bearer_token`. */
  readonly headers: Readonly<Record<string, string>> | null;
  /** The waits before retry 1, 2, … in milliseconds; the last one goes for all that follow. */
  readonly retry_schedule: readonly number[] | null;
  /**
   * One delivery at a time, in the order in which the events were published; with a key, one at a time of the events with the
   * same value at that JSON Pointer.
   */
  readonly ordered: Order;
  /** What becomes of an ordered one's delivery that has used up its retries; `null` where it is not ordered. */
  readonly on_exhausted: OnExhausted | null;
  /** One of mode `pull` is deleted once nobody has claimed from it for so long. */
  readonly expires_after_ms: number | null;
}

export type Order = boolean | { readonly key: string };

/** The JSON Pointer of the keys that it orders by: that of one constant key where it has one order; `null` where it has none. */
export function orderPointer(ordered: Order): string | null {
  if (ordered === true) return WHOLE_ORDER;
  return ordered === false ? null : ordered.key;
}

/** block: it is tried on, and those behind it (of its key) wait. skip: it has failed, and the next one is sent. */
export const ON_EXHAUSTED = ["block", "skip"] as const;
export type OnExhausted = (typeof ON_EXHAUSTED)[number];

export const NO_SETTINGS: SubscriptionSettings = {
  filter: null,
  rate_limit: null,
  max_in_flight: null,
  timeout_ms: null,
  headers: null,
  retry_schedule: null,
  ordered: false,
  on_exhausted: null,
  expires_after_ms: null,
};

export const SETTINGS_LIMITS = {
  rateMin: 0.01,
  rateMax: 10_000,
  inFlightMax: 1_000,
  timeoutMinMs: 100,
  timeoutMaxMs: 60_000,
  headers: 20,
  headerNameLength: 128,
  headerValueLength: 1_024,
  /**
   * The bytes of all names and values: many servers take 16 KiB of headers, those of the service and of proxies included.
   */
  headersBytes: 8_192,
  waits: 20,
  waitMaxMs: 7 * 86_400_000,
  expiryMinMs: 3_600_000,
  expiryMaxMs: 90 * 86_400_000,
} as const;

/** The settings that a request names, and nothing else of it. */
export function settingsIn(body: Partial<SubscriptionSettings>): Partial<SubscriptionSettings> {
  const named = Object.keys(NO_SETTINGS).filter((name) => Object.hasOwn(body, name));
  return Object.fromEntries(named.map((name) => [name, body[name as keyof SubscriptionSettings]]));
}

/** The settings after a change. `on_exhausted` follows `ordered`. */
export function changedSettings(
  before: SubscriptionSettings,
  change: Partial<SubscriptionSettings>,
): SubscriptionSettings {
  const after = { ...before, ...change };
  return { ...after, on_exhausted: after.ordered !== false ? (after.on_exhausted ?? "block") : null };
}

/** A token of RFC 9110. */
export const HEADER_NAME = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";
const NAME = new RegExp(HEADER_NAME);
/** Printable ASCII, without spaces around it: what every server and proxy reads alike. */
export const HEADER_VALUE = "^(?:[!-~](?:[ -~]*[!-~])?)?$";
const VALUE = new RegExp(HEADER_VALUE);

/**
 * Set by evreg itself, framing the message (RFC 9110 and 9112), or acted upon by proxies. One of these from a subscription
 * could replace a signature or smuggle a request.
 */
const RESERVED = new Set([
  "accept-encoding",
  "authorization",
  "connection",
  "date",
  "expect",
  "host",
  "keep-alive",
  // CGI would give it to a handler as HTTP_PROXY, by which many programs choose their proxy (httpoxy).
  "proxy",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "user-agent",
  "via",
]);
const RESERVED_BEGINNINGS = ["content-", "proxy-", "webhook-", "x-evreg-"];

export function isReservedHeader(name: string): boolean {
  const plain = plainName(name);
  return RESERVED.has(plain) || RESERVED_BEGINNINGS.some((beginning) => plain.startsWith(beginning));
}

/** CGI and WSGI give a handler `X_Evreg_Event` as the same variable as `X-Evreg-Event`. */
function plainName(name: string): string {
  return name.toLowerCase().replaceAll("_", "-");
}

/** @throws `invalid` with the header at fault, and never with its value, which may be a secret */
export function checkExtraHeaders(field: string, headers: Readonly<Record<string, string>>): void {
  const { headerNameLength, headerValueLength, headersBytes } = SETTINGS_LIMITS;
  const seen = new Set<string>();
  let bytes = 0;
  for (const [name, value] of Object.entries(headers)) {
    const refuse = (message: string): never => {
      throw invalidField(`${field}[${JSON.stringify(name.slice(0, headerNameLength))}]`, message);
    };
    if (name.length > headerNameLength || !NAME.test(name)) {
      refuse(`must have a name of 1 to ${headerNameLength} letters, digits and - _ . ! # $ % & ' * + ^ | ~`);
    }
    const hint = name.toLowerCase() === "authorization" ? "; a value of its own goes into bearer_token" : "";
    if (name === "__proto__") refuse("is a name that programs in JavaScript cannot keep; give it another");
    if (isReservedHeader(name)) refuse(`is a header that only the service itself sets${hint}`);
    if (value.length > headerValueLength) refuse(`must be at most ${headerValueLength} characters long`);
    if (!VALUE.test(value)) refuse("must be printable ASCII characters without spaces around them");
    const plain = plainName(name);
    if (seen.has(plain)) refuse("is named twice: capitals, and _ for -, make no difference");
    seen.add(plain);
    bytes += name.length + value.length;
  }
  if (bytes <= headersBytes) return;
  throw invalidField(
    field,
    `must be at most ${headersBytes} bytes, names and values together; these are ${bytes}`,
  );
}
