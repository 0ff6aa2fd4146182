import { asEvregError, HTTP_STATUS } from "../domain/error.ts";
import type { EvregError } from "../domain/error.ts";
import { reply } from "./reply.ts";
import type { HeaderPair, Reply } from "./reply.ts";

/** Long enough for a store to recover from a full disk's cleaning or a restart, short enough not to lose a publisher. */
const RETRY_AFTER_SECONDS = "2";

/** The reply to any failure, in the one shape that all failures have. */
export function failureReply(failure: unknown): Reply {
  const error = asEvregError(failure);
  const status = HTTP_STATUS[error.code];
  return reply(status, error.body(), failureHeaders(error));
}

function failureHeaders(error: EvregError): readonly HeaderPair[] | undefined {
  const { code } = error;
  if (code === "unauthorized") return [["www-authenticate", 'Bearer realm="evreg"']];
  if (code === "method_not_allowed") return [["allow", String(error.details["allow"])]];
  if (code === "unavailable" || code === "rate_limited") return [["retry-after", RETRY_AFTER_SECONDS]];
  return undefined;
}
