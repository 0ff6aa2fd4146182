import { codeOfStatus, EvregError } from "../domain/error.ts";
import type { ErrorBody } from "../domain/error.ts";
import { retryAfterMs } from "../domain/retry.ts";
import type { Received } from "./channel.ts";
import type { Target } from "./target.ts";

/** The failure another evreg answered, as the error it was there; `undefined` when the answer is not in its shape. */
export function refusal({ status, bytes, headers }: Received): EvregError | undefined {
  const body = parse(bytes);
  if (!isErrorBody(body) || body.code !== status) return undefined;
  return askingToWait(new EvregError(codeOfStatus(status), body.error, body.details), headers);
}

function askingToWait(error: EvregError, headers: Received["headers"]): EvregError {
  const value = headers["retry-after"];
  const waitMs = typeof value === "string" ? retryAfterMs(value, Date.now()) : undefined;
  if (waitMs !== undefined) error.retryAfterMs = waitMs;
  return error;
}

/**
 * The same refusal, unless it is evreg telling that it has no such route, asked for `/v1` twice over: then what to do
 * about the address. A proxy may well have a `/v1` of its own in front, so what evreg says it saw decides.
 */
export function withAdvice(error: EvregError, { origin, basePath }: Target, path: string): EvregError {
  const seen = ` /v1${path.split("/", 3).join("/")}`;
  const doubled = error.code === "not_found" && error.message.includes(seen);
  if (!doubled || !basePath.endsWith("/v1")) return error;
  const right = `${origin}${basePath.slice(0, -"/v1".length)}`;
  return new EvregError(
    "unreachable",
    `The address ${origin}${basePath} ends in /v1, which is added to it anyway. Leave that off: ${right}`,
    { url: right },
  );
}

/** Something answered, but not evreg: a proxy, another program, a login page. */
export function foreignAnswer({ status, headers, asked }: Received): EvregError {
  const location = headers["location"];
  if (status >= 300 && status < 400 && typeof location === "string") {
    return new EvregError(
      "unreachable",
      `${asked} was redirected (HTTP ${status}) to ${location.slice(0, 200)}. Redirects are not followed: give that address instead.`,
      { status },
    );
  }
  const type = headers["content-type"];
  const foreign = new EvregError(
    "unreachable",
    `${asked} was answered with HTTP ${status}${typeof type === "string" ? ` and ${type.slice(0, 100)}` : ""}, but not as evreg answers. Is the address that of an evreg server?`,
    { status },
  );
  return askingToWait(foreign, headers);
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    return undefined;
  }
}

function isErrorBody(value: unknown): value is ErrorBody {
  if (typeof value !== "object" || value === null) return false;
  const { error, details, code } = value as Record<string, unknown>;
  return (
    typeof error === "string" && typeof details === "object" && details !== null && typeof code === "number"
  );
}
