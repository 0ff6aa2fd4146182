import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import type { Clock } from "../runtime/clock.ts";
import type { Pieces } from "./reply.ts";

/** How much more of an unwanted body is taken off the wire, and for how long, so that its sender reads the answer. */
const LINGER_MAX_BYTES = 8 * 1024 * 1024;
const LINGER_MS = 2_000;

/** So many at once; of more, nothing is taken, so that refusing many costs nobody else anything. */
const LINGERING_MAX = 16;
let lingeringNow = 0;

/** A rest of this size is read away by node itself, and the connection stays usable. */
const SMALL_REST_BYTES = 64 * 1024;

/** Whether more of the request's body is on its way than is worth reading away to keep the connection. */
export function hasLongRest(request: IncomingMessage): boolean {
  if (request.complete || request.destroyed) return false;
  const declared = request.headers["content-length"];
  if (declared !== undefined) return Number(declared) > SMALL_REST_BYTES;
  return request.headers["transfer-encoding"] !== undefined;
}

/**
 * The answer as a stream that ends only after the rest of the request's body was read away.
 *
 * Closing a socket with unread bytes in it resets the connection, and the caller would see the reset in place of the
 * answer (RFC 9112, 9.6). The answer itself goes out at once; only the close waits, within bounds.
 */
export function lingering(request: IncomingMessage, body: string | Pieces, clock: Clock): Readable {
  const answer = new Readable({ read() {} });
  if (typeof body === "string") answer.push(body);
  else for (const piece of body) answer.push(piece);
  let allowedBytes = LINGER_MAX_BYTES;
  const isReadAway = lingeringNow < LINGERING_MAX;
  if (isReadAway) lingeringNow += 1;
  let finished = false;
  const finish = (): void => {
    if (isReadAway && !finished) lingeringNow -= 1;
    finished = true;
    cancelTimer();
    // Not the one for errors: node makes one of a caller that leaves when somebody listens, and tells it a moment later.
    request.off("data", onData).off("end", finish).off("close", finish);
    if (!answer.destroyed) answer.push(null);
  };
  const onData = (chunk: Uint8Array): void => {
    allowedBytes -= chunk.length;
    if (allowedBytes < 0) finish();
  };
  const cancelTimer = clock.setTimer(finish, LINGER_MS);
  request.on("end", finish).on("close", finish).on("error", finish);
  answer.on("close", finish);
  if (isReadAway) request.on("data", onData).resume();
  return answer;
}
