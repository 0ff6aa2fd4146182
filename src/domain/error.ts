import { JsonError } from "../json/json-error.ts";

/** Everything that can go wrong, as the product names it. Each has an HTTP status and an exit code below. */
export type EvregErrorCode =
  | "malformed"
  | "unauthorized"
  | "forbidden"
  | "not_found"
  | "method_not_allowed"
  | "conflict"
  | "gone"
  | "too_large"
  | "unsupported_media_type"
  | "invalid"
  | "rate_limited"
  | "unavailable"
  | "unreachable"
  | "usage"
  | "internal";

export const HTTP_STATUS: Readonly<Record<EvregErrorCode, number>> = {
  malformed: 400,
  unauthorized: 401,
  forbidden: 403,
  not_found: 404,
  method_not_allowed: 405,
  conflict: 409,
  gone: 410,
  too_large: 413,
  unsupported_media_type: 415,
  invalid: 422,
  rate_limited: 429,
  unavailable: 503,
  // The next two arise in a client, which never answers HTTP; the table stays complete all the same.
  unreachable: 502,
  usage: 400,
  internal: 500,
};

export const EXIT_CODE: Readonly<Record<EvregErrorCode, number>> = {
  malformed: 1,
  unauthorized: 4,
  forbidden: 4,
  not_found: 3,
  method_not_allowed: 1,
  conflict: 5,
  gone: 1,
  too_large: 1,
  unsupported_media_type: 1,
  invalid: 1,
  rate_limited: 1,
  unavailable: 1,
  unreachable: 6,
  usage: 2,
  internal: 1,
};

export type ErrorDetails = Readonly<Record<string, unknown>>;

/** The body of every failed HTTP answer. */
export interface ErrorBody {
  readonly error: string;
  readonly details: ErrorDetails;
  readonly code: number;
}

/**
 * The one error of the product. `message` is a sentence for a person: what happened, where, what to do next.
 * Never put a token, a secret or a payload of another owner into either field: both reach clients and logs.
 */
export class EvregError extends Error {
  override readonly name = "EvregError";
  readonly code: EvregErrorCode;
  readonly details: ErrorDetails;
  /** After how long the server wants the next try (`Retry-After`). */
  retryAfterMs?: number;

  constructor(code: EvregErrorCode, message: string, details: ErrorDetails = {}, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.details = details;
  }

  /** The HTTP error body of this failure. */
  body(): ErrorBody {
    return { error: this.message, details: this.details, code: HTTP_STATUS[this.code] };
  }
}

/** A refused input with the field at fault: `field` in dotted/bracket form (`address.zip`, `items[2].sku`). */
export function invalidField(field: string, message: string, value?: unknown): EvregError {
  return new EvregError("invalid", `${field}: ${message}`, { field, message, value: value ?? null });
}

/**
 * The error itself; `malformed` with `{ line, column, byte, reason }` for a refused JSON document; `internal` around
 * anything else, whose own message must not reach a client.
 */
export function asEvregError(error: unknown): EvregError {
  if (error instanceof EvregError) return error;
  if (error instanceof JsonError) {
    const { message, line, column, byte, reason } = error;
    return new EvregError("malformed", message, { line, column, byte, reason });
  }
  return new EvregError(
    "internal",
    "Something failed inside evreg; its log has the cause.",
    {},
    { cause: error },
  );
}

/** The product's code for an HTTP status another evreg answered. */
export function codeOfStatus(status: number): EvregErrorCode {
  switch (status) {
    case 400:
      return "malformed";
    case 401:
      return "unauthorized";
    case 403:
      return "forbidden";
    case 404:
      return "not_found";
    case 405:
      return "method_not_allowed";
    case 409:
      return "conflict";
    case 410:
      return "gone";
    case 413:
      return "too_large";
    case 415:
      return "unsupported_media_type";
    case 422:
      return "invalid";
    case 429:
      return "rate_limited";
    case 503:
      return "unavailable";
    default:
      return "internal";
  }
}
