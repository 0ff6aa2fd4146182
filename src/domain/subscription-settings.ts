import { type RecordOf, type SettingOf, noneOf } from "../model/field.ts";
import { SUBSCRIPTION, SUBSCRIPTION_LIMITS } from "../model/subscription.ts";
import { invalidField } from "./error.ts";
import { WHOLE_ORDER } from "./order-key.ts";

/** What a subscription has of its own; `null` stands for what all have. */
export type SubscriptionSettings = Pick<RecordOf<typeof SUBSCRIPTION>, SettingOf<typeof SUBSCRIPTION>>;

export type Order = SubscriptionSettings["ordered"];

/** The JSON Pointer of the keys that it orders by: that of one constant key where it has one order; `null` where it has none. */
export function orderPointer(ordered: Order): string | null {
  if (ordered === true) return WHOLE_ORDER;
  return ordered === false ? null : ordered.key;
}

/** block: it is tried on, and those behind it (of its key) wait. skip: it has failed, and the next one is sent. */
export type OnExhausted = NonNullable<SubscriptionSettings["on_exhausted"]>;

export const NO_SETTINGS: SubscriptionSettings = noneOf(SUBSCRIPTION);

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

/**
 * Checks what a schema does not say of settings that are given.
 * @param before those that stay where none are given
 * @throws `invalid`
 */
export function checkSettings(
  { headers = null, ordered, on_exhausted: exhausted = null }: Partial<SubscriptionSettings>,
  before: SubscriptionSettings = NO_SETTINGS,
): void {
  if (headers !== null) checkExtraHeaders("headers", headers);
  if (exhausted === null || (ordered ?? before.ordered) !== false) return;
  throw invalidField("on_exhausted", "is for subscriptions that are ordered only", exhausted);
}

/**
 * Set by evreg itself, framing the message (RFC 9110 and 9112), or acted upon by proxies. One of these from a subscription
 * could replace a signature or smuggle a request. CGI would give `proxy` to a handler as HTTP_PROXY, by which many programs
 * choose their proxy (httpoxy).
 */
const RESERVED = new Set(
  "accept-encoding authorization connection date expect host keep-alive proxy te trailer transfer-encoding upgrade user-agent via".split(
    " ",
  ),
);
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
  const { headersBytes } = SUBSCRIPTION_LIMITS;
  const seen = new Set<string>();
  let bytes = 0;
  for (const [name, value] of Object.entries(headers)) {
    const refuse = (message: string): never => {
      throw invalidField(`${field}[${JSON.stringify(name)}]`, message);
    };
    const hint =
      name.toLowerCase() === "authorization"
        ? "; a value of its own goes into bearer_token, or --bearer-token-file"
        : "";
    if (name === "__proto__") refuse("is a name that programs in JavaScript cannot keep; give it another");
    if (isReservedHeader(name)) refuse(`is a header that only the service itself sets${hint}`);
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
