import type { IncomingMessage } from "node:http";
import { Readable } from "node:stream";
import { asEvregError } from "../domain/error.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import { CallerGone } from "./body.ts";
import type { Incoming } from "./request.ts";
import {
  type AnswerBody,
  failureReply,
  type HeaderPair,
  HttpAnswer,
  isFlow,
  type Pieces,
  type Reply,
  requestIdOf,
  sizeOf,
} from "./response.ts";
import { BACKUP_PATH } from "./routes/backup.ts";

/** The end of every request: the shared headers, and its one line in the log. */
export interface Finish {
  replied(incoming: Incoming, startedMs: number, reply: Reply): HttpAnswer;
  failed(incoming: Incoming, startedMs: number, failure: unknown): HttpAnswer;
}

/** What nginx calls a request whose sender left; it is only ever in the log. */
const CALLER_GONE_STATUS = 499;

export function createFinish({ logger, clock }: { logger: Logger; clock: Clock }): Finish {
  function finish(incoming: Incoming, startedMs: number, reply: Reply, requestId: string): HttpAnswer {
    const { body, status, release } = reply;
    if (release !== undefined) incoming.whenOver(release);
    const bytes = sizeOf(body);
    incoming.answered(bytes);
    const { method, path } = incoming;
    const level = isRoutine(method, path, status) ? "debug" : "info";
    if (level === "info" || logger.isDebugEnabled) {
      const line = { requestId, method, path, status, durationMs: clock.now() - startedMs, bytes };
      logger[level](line, "request");
    }
    const headers: HeaderPair[] = [
      ["x-content-type-options", "nosniff"],
      ["cache-control", "no-store"],
      ["x-request-id", requestId],
    ];
    if (status !== 204) {
      const { mediaType = "application/json" } = reply;
      headers.push(["content-type", mediaType], ["content-length", String(bytes)]);
    }
    if (reply.headers !== undefined) headers.push(...reply.headers);
    const request = incoming.nodeRequest;
    if (isFlow(body))
      return new HttpAnswer(status, headers, Readable.from(body.pieces, { objectMode: false }));
    if (request === undefined || !hasLongRest(request)) {
      return new HttpAnswer(status, headers, status === 204 ? null : whole(body, request !== undefined));
    }
    headers.push(["connection", "close"]);
    return new HttpAnswer(status, headers, lingering(request, body, clock));
  }

  return {
    replied: (incoming, startedMs, reply) =>
      finish(incoming, startedMs, reply, requestIdOf(incoming.header("x-request-id"))),
    failed(incoming, startedMs, failure) {
      const requestId = requestIdOf(incoming.header("x-request-id"));
      if (failure instanceof CallerGone) {
        const reply = failureReply(undefined);
        return finish(incoming, startedMs, { ...reply, status: CALLER_GONE_STATUS }, requestId);
      }
      const error = asEvregError(failure);
      if (error.code === "internal") {
        const { method, path } = incoming;
        logger.error({ requestId, method, path, err: error.cause ?? error }, "a request failed inside evreg");
      }
      return finish(incoming, startedMs, failureReply(error), requestId);
    },
  };
}

/**
 * What goes well thousands of times a second, or is asked by probes every few, is no news: a line each would be hundreds
 * of gigabytes a day. Refusals are told, and whatever changes something other than by publishing.
 */
function isRoutine(method: string, path: string, status: number): boolean {
  // 207 is a batch of which some was refused.
  if (status >= 400 || status === 207) return false;
  // Everything leaves with it.
  if (path === BACKUP_PATH) return false;
  return method === "GET" || method === "HEAD" || path.startsWith("/v1/events");
}

/** Pieces as a stream that the socket takes them from, or put together where there is no socket. */
function whole(body: string | Pieces, toSocket: boolean): AnswerBody {
  if (typeof body === "string") return body;
  if (body.length === 1) return body[0]!;
  return toSocket ? Readable.from(body, { objectMode: false }) : Buffer.concat(body);
}

/** How much more of an unwanted body is taken off the wire, and for how long, so that its sender reads the answer. */
const LINGER_MAX_BYTES = 8 * 1024 * 1024;
const LINGER_MS = 2_000;

/** So many at once; of more, nothing is taken, so that refusing many costs nobody else anything. */
const LINGERING_MAX = 16;
let lingeringNow = 0;

/** A rest of this size is read away by node itself, and the connection stays usable. */
const SMALL_REST_BYTES = 64 * 1024;

/** Whether more of the request's body is on its way than is worth reading away to keep the connection. */
function hasLongRest(request: IncomingMessage): boolean {
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
function lingering(request: IncomingMessage, body: string | Pieces, clock: Clock): Readable {
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
