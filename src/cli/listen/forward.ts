import { Agent, request } from "undici";
import type { ConsumerErrorCode, PulledDelivery } from "../../domain/pull.ts";
import { messageOf } from "../../domain/error.ts";
import { networkErrorCode } from "../../domain/network-error.ts";
import { usageError } from "../usage-errors.ts";

/** What came of one try on this machine. */
export interface LocalResult {
  readonly isDelivered: boolean;
  /** What a program answered. */
  readonly status?: number;
  readonly errorCode?: ConsumerErrorCode;
  /** The beginning of the answer, or why there is none. */
  readonly reason?: string;
  /** A signal cut it short: what it did is not known. */
  readonly isCut?: boolean;
}

/** Hands one delivery to something on this machine. Never rejects. @param signal cuts it short */
export type LocalAttempt = (delivery: PulledDelivery, signal: AbortSignal) => Promise<LocalResult>;

/** evreg waits for a handler so long at most. */
const TIMEOUT_MS = 60_000;
const MAX_STATUS = 599;
/** So many bytes of an answer are reported; the server keeps 1 KiB. */
const REASON_BYTES = 1_024;

/** Posts each delivery to the address: the very bytes and headers that a handler would be sent. */
export function forwardTo(url: URL): LocalAttempt {
  const agent = new Agent({
    headersTimeout: TIMEOUT_MS,
    bodyTimeout: TIMEOUT_MS,
    connect: { timeout: 10_000 },
  });
  return async ({ headers, body }, signal) => {
    try {
      const { statusCode: status, body: answer } = await request(url, {
        method: "POST",
        dispatcher: agent,
        headers: { ...headers },
        body: Buffer.from(body),
        signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
      });
      const reason = await beginningOf(answer);
      // No status of HTTP (RFC 9110, 15), and none that the server takes.
      if (status > MAX_STATUS) {
        return { isDelivered: false, errorCode: "protocol_error", reason: `HTTP ${status}` };
      }
      const isDelivered = status >= 200 && status <= 299;
      return { isDelivered, status, ...(reason === "" ? {} : { reason }) };
    } catch (error) {
      const errorCode = networkErrorCode(error);
      return { isDelivered: false, errorCode, reason: messageOf(error), isCut: signal.aborted };
    }
  };
}

async function beginningOf(answer: AsyncIterable<Uint8Array>): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of answer) {
    pieces.push(piece);
    bytes += piece.length;
    // Leaving the loop ends the connection, so that an answer without end does no harm.
    if (bytes >= REASON_BYTES) break;
  }
  return Buffer.concat(pieces).subarray(0, REASON_BYTES).toString("utf8");
}

/**
 * An address as people type it: `3000` and `3000/hooks` are ports of this machine, `localhost:3000/hooks` and whole URLs are
 * what they say.
 * @throws EvregError `usage`
 */
export function localUrl(text: string): URL {
  const isPort = /^:?\d+(?:[/?]|$)/.test(text);
  const hasScheme = /^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  const whole = isPort ? `http://localhost:${text.replace(/^:/, "")}` : hasScheme ? text : `http://${text}`;
  // A URL reads a number as an IPv4 address: events would go to a machine that nobody meant.
  const isNumber = /^https?:\/\/(?:\d+|0x[0-9a-f]*)(?:[/:?#]|$)/i.test(whole);
  const url = URL.canParse(whole) && !isNumber ? new URL(whole) : undefined;
  const isHttp = url?.protocol === "http:" || url?.protocol === "https:";
  if (url !== undefined && isHttp && url.username === "" && url.password === "" && url.port !== "0")
    return url;
  throw usageError(
    `--forward-to takes an address such as http://localhost:3000/hooks, localhost:3000 or 3000; not ${JSON.stringify(text)}.`,
  );
}
