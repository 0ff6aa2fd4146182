import { Readable } from "node:stream";
import { asEvregError } from "../domain/error.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Logger } from "../runtime/logger.ts";
import { BACKUP_PATH } from "./backup.ts";
import { HttpAnswer } from "./answer.ts";
import type { AnswerBody } from "./answer.ts";
import { CallerGone } from "./body.ts";
import { failureReply } from "./failure.ts";
import type { Incoming } from "./incoming.ts";
import { hasLongRest, lingering } from "./lingering.ts";
import { isFlow, sizeOf } from "./reply.ts";
import type { HeaderPair, Pieces, Reply } from "./reply.ts";
import { requestIdOf } from "./request-id.ts";

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
    if (level === "info" || logger.tellsDebug) {
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
