import { invalidField } from "./error.ts";
import { SETTINGS_LIMITS } from "./subscription-settings.ts";

/** A token of RFC 9110. */
export const HEADER_NAME = "^[!#$%&'*+.^_`|~0-9A-Za-z-]+$";
const NAME = new RegExp(HEADER_NAME);
/** Printable ASCII, without spaces around it: what every server and proxy reads alike. */
export const HEADER_VALUE = "^(?:[!-~](?:[ -~]*[!-~])?)?$";
const VALUE = new RegExp(HEADER_VALUE);

/**
 * What the service says itself, what frames the message or belongs to the connection (RFC 9110 and 9112), and what
 * proxies on the way act upon. One of these from elsewhere could take a signature's place, or smuggle a request.
 */
const RESERVED = new Set([
  "accept-encoding",
  "authorization",
  "connection",
  "date",
  "expect",
  "host",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "user-agent",
  "via",
]);
const RESERVED_BEGINNINGS = ["content-", "proxy-", "webhook-", "x-evreg-"];

/** Whether a subscription's headers may not have this name. */
export function isReservedHeader(name: string): boolean {
  const plain = plainName(name);
  return RESERVED.has(plain) || RESERVED_BEGINNINGS.some((beginning) => plain.startsWith(beginning));
}

/** CGI, WSGI and what took after them hand `X_Evreg_Event` to a handler as the same variable as `X-Evreg-Event`. */
function plainName(name: string): string {
  return name.toLowerCase().replaceAll("_", "-");
}

/**
 * The headers that a subscription wants sent with its deliveries.
 * @throws `invalid` with the header at fault, and never with its value, which may be a secret all the same
 */
export function checkExtraHeaders(field: string, headers: Readonly<Record<string, string>>): void {
  const seen = new Set<string>();
  let bytes = 0;
  for (const [name, value] of Object.entries(headers)) {
    const refuse = (message: string): never => {
      throw invalidField(
        `${field}[${JSON.stringify(name.slice(0, SETTINGS_LIMITS.headerNameLength))}]`,
        message,
      );
    };
    if (name.length > SETTINGS_LIMITS.headerNameLength || !NAME.test(name)) {
      refuse(
        `must have a name of 1 to ${SETTINGS_LIMITS.headerNameLength} letters, digits and - _ . ! # $ % & ' * + ^ | ~`,
      );
    }
    const hint = name.toLowerCase() === "authorization" ? "; a value of its own goes into bearer_token" : "";
    if (name === "__proto__") refuse("is a name that programs in JavaScript cannot keep; give it another");
    if (isReservedHeader(name)) refuse(`is a header that only the service itself sets${hint}`);
    if (value.length > SETTINGS_LIMITS.headerValueLength) {
      refuse(`must be at most ${SETTINGS_LIMITS.headerValueLength} characters long`);
    }
    if (!VALUE.test(value)) refuse("must be printable ASCII characters without spaces around them");
    const plain = plainName(name);
    if (seen.has(plain)) refuse("is named twice: capitals, and _ for -, make no difference");
    seen.add(plain);
    bytes += name.length + value.length;
  }
  if (bytes > SETTINGS_LIMITS.headersBytes) {
    throw invalidField(
      field,
      `must be at most ${SETTINGS_LIMITS.headersBytes} bytes, names and values together; these are ${bytes}`,
    );
  }
}
