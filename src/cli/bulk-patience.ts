import { EvregError, HTTP_STATUS } from "../domain/error.ts";
import type { BatchResult } from "../domain/event.ts";
import type { PublishItems } from "./bulk-line.ts";
import { printableLine } from "./printable.ts";

/** For how long one request is tried again. Whoever has a checkpoint loses nothing by an end; whoever watches wants to know. */
const PATIENCE_MS = 120_000;
const FIRST_WAIT_MS = 250;
const LONGEST_WAIT_MS = 5_000;

export interface PatienceOptions {
  readonly signal: AbortSignal;
  readonly nowMs: () => number;
  /** Rejects when the signal aborts. */
  readonly sleep: (delayMs: number, signal: AbortSignal) => Promise<void>;
  readonly tell: (line: string) => void;
}

/**
 * Publishes again what a target could not take or did not answer, for two minutes at most: after 250 ms, then doubling up
 * to 5 s, or when `Retry-After` says. What may have been stored all the same is sent again only where every item has an
 * idempotency key; and a server that was never there is probably the wrong one, so that is told at once.
 */
export function patiently(publish: PublishItems, options: PatienceOptions): PublishItems {
  const { signal, nowMs, sleep, tell } = options;
  let wasThere = false;
  let isTold = false;
  return async (items, how) => {
    const isKeyed = items.every((item) => item instanceof EvregError || item.idempotency_key !== undefined);
    let untilMs: number | undefined;
    for (let tries = 0; ; tries += 1) {
      let failure: unknown;
      try {
        const result = await publish(items, how);
        wasThere = true;
        failure = isKeyed ? unstored(result) : undefined;
        if (failure === undefined) {
          isTold = false;
          return result;
        }
      } catch (error) {
        failure = error;
      }
      wasThere ||= isThere(failure);
      untilMs ??= nowMs() + PATIENCE_MS;
      const waitMs = Math.max(askedMs(failure), Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** tries));
      const isSafe = wasThere && (isKeyed || isCertain(failure));
      if (!mayPass(failure) || !isSafe || nowMs() + waitMs > untilMs || signal.aborted) throw failure;
      if (!isTold) tell(`${reason(failure)} Trying again for ${PATIENCE_MS / 60_000} minutes.`);
      isTold = true;
      try {
        await sleep(waitMs, signal);
      } catch {
        throw failure;
      }
    }
  };
}

/** Without the advice for those who do not try again by themselves. */
function reason({ code, message, details }: EvregError): string {
  if (code !== "unreachable") return printableLine(message);
  const { cause, status } = details;
  if (typeof cause !== "string") return `The server did not answer (${String(status)}).`;
  if (cause === "ECONNREFUSED") return "The server is not there any more (connection refused).";
  const isBroken = cause === "UND_ERR_SOCKET" || cause === "ECONNRESET" || cause === "EPIPE";
  return isBroken ? "The connection to the server broke." : `The server did not answer (${cause}).`;
}

/** Some items of a batch can fail by the store while others are stored; with keys the whole of it can go again. */
function unstored({ errors }: BatchResult): EvregError | undefined {
  const first = errors.find(({ code }) => code === HTTP_STATUS.unavailable);
  return first === undefined ? undefined : new EvregError("unavailable", first.error, first.details);
}

/** Before a connection stands nothing was sent. */
const NEVER_SENT = new Set<unknown>([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);
const NEVER_CONNECTED = new Set<unknown>([...NEVER_SENT, "UND_ERR_CONNECT_TIMEOUT", "ETIMEDOUT"]);
const LOST = new Set<unknown>(["ECONNRESET", "EPIPE", "UND_ERR_SOCKET", "TimeoutError"]);
/** Of a proxy before a server that is away. */
const GATEWAY_STATUSES = new Set<unknown>([429, 502, 503, 504]);

function mayPass(failure: unknown): failure is EvregError {
  if (!(failure instanceof EvregError)) return false;
  const { code, details } = failure;
  if (code === "rate_limited" || code === "unavailable") return true;
  const { cause, status } = details;
  const isLost = NEVER_CONNECTED.has(cause) || LOST.has(cause) || GATEWAY_STATUSES.has(status);
  return code === "unreachable" && isLost;
}

function isThere(failure: unknown): boolean {
  if (!(failure instanceof EvregError)) return false;
  return failure.code !== "unreachable" || !NEVER_CONNECTED.has(failure.details["cause"]);
}

/** Whether a failure says that nothing was stored. A refusal of the whole batch does. */
export function isCertain(failure: unknown): boolean {
  if (!(failure instanceof EvregError)) return false;
  if (failure.code === "unreachable") return NEVER_SENT.has(failure.details["cause"]);
  return failure.code !== "unavailable" && failure.code !== "internal";
}

function askedMs(failure: unknown): number {
  return failure instanceof EvregError ? (failure.retryAfterMs ?? 0) : 0;
}
