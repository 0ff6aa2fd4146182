import { invalidField } from "./error.ts";
import { SUBSCRIPTION_LIMITS } from "./subscription.ts";

/**
 * A subscription's own bearer value: what can stand in a header as it is.
 * @throws `invalid` with the field at fault, and never with the value
 */
export function checkBearerToken(field: string, value: string): string {
  const most = SUBSCRIPTION_LIMITS.bearerTokenLength;
  if (value.length <= most && /^[!-~]+$/.test(value)) return value;
  throw invalidField(field, `must be 1 to ${most} printable ASCII characters without spaces`);
}
