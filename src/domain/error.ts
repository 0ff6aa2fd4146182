import { JsonError } from "../json/json-error.ts";

/** Everything that can go wrong, with its HTTP status and the exit code of a command. */
const CODES = {
  malformed: { status: 400, exit: 1 },
  unauthorized: { status: 401, exit: 4 },
  forbidden: { status: 403, exit: 4 },
  not_found: { status: 404, exit: 3 },
  method_not_allowed: { status: 405, exit: 1 },
  conflict: { status: 409, exit: 5 },
  gone: { status: 410, exit: 1 },
  too_large: { status: 413, exit: 1 },
  unsupported_media_type: { status: 415, exit: 1 },
  invalid: { status: 422, exit: 1 },
  rate_limited: { status: 429, exit: 1 },
  unavailable: { status: 503, exit: 1 },
  internal: { status: 500, exit: 1 },
  // These two come from a client, which never answers HTTP.
  unreachable: { status: 502, exit: 6 },
  usage: { status: 400, exit: 2 },
} as const;

export type EvregErrorCode = keyof typeof CODES;

export const HTTP_STATUS = columnOf("status");
export const EXIT_CODE = columnOf("exit");

function columnOf(column: "status" | "exit"): Readonly<Record<EvregErrorCode, number>> {
  const entries = Object.entries(CODES).map(([code, values]) => [code, values[column]]);
  return Object.fromEntries(entries) as Record<EvregErrorCode, number>;
}

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
  /** The server wants the next try after so long (`Retry-After`). */
  retryAfterMs?: number;

  constructor(code: EvregErrorCode, message: string, details: ErrorDetails = {}, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
    this.details = details;
  }

  body(): ErrorBody {
    return { error: this.message, details: this.details, code: HTTP_STATUS[this.code] };
  }
}

/** What a command ends with. A refusal that is worth trying again ends it as a server that does not answer. */
export function exitCodeFor(error: EvregError): number {
  return error.retryAfterMs === undefined ? EXIT_CODE[error.code] : EXIT_CODE.unreachable;
}

export function tooLarge(what: string, size: number, limit: number): EvregError {
  const [has, max] = [size, limit].map((bytes) => bytes.toLocaleString("en"));
  const message = `The ${what} has ${has} bytes; at most ${max} are accepted.`;
  return new EvregError("too_large", message, { limit, size });
}

/** @param field the field at fault, in dotted/bracket form (`address.zip`, `items[2].sku`) */
export function invalidField(field: string, message: string, value?: unknown): EvregError {
  return new EvregError("invalid", `${field}: ${message}`, { field, message, value: value ?? null });
}

/**
 * The error itself; `malformed` with the position for a refused JSON document; `internal` around anything else, whose own
 * message must not reach a client.
 */
export function asEvregError(error: unknown): EvregError {
  if (error instanceof EvregError) return error;
  if (error instanceof JsonError) {
    const { message, line, column, byte, reason } = error;
    return new EvregError("malformed", message, { line, column, byte, reason }, { cause: error });
  }
  const message = "Something failed inside evreg; its log has the cause.";
  return new EvregError("internal", message, {}, { cause: error });
}

/** The code for the HTTP status of another evreg's answer. */
export function codeOfStatus(status: number): EvregErrorCode {
  const codes = Object.keys(CODES) as EvregErrorCode[];
  return codes.find((code) => CODES[code].status === status && code !== "unreachable") ?? "internal";
}

/** Why something failed, whatever was thrown. */
export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
