import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "../runtime/clock.ts";
import { isEnding, lingeringClose } from "./connections.ts";

type Failure = readonly [status: number, message: string];

const FAILURES: Readonly<Record<string, Failure>> = {
  HPE_HEADER_OVERFLOW: [
    431,
    "The address and the headers of the request are too large; together they may have 16 KiB.",
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "The request did not arrive in time."],
};
const NOT_HTTP: Failure = [400, "This is not a valid HTTP/1.1 request."];
const NO_ADDRESS: Failure = [400, "The request's address or its `Host` header is not valid."];

/**
 * What node's parser met on a connection: not HTTP, too large a head, too slow a sender. No request came of it.
 * @param newest the answer to the connection's last request
 */
export function answerParserError(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  newest: ServerResponse | undefined,
  clock: Clock,
): void {
  // Every further piece of a broken request is an error again.
  if (isEnding(socket)) return;
  const failure = FAILURES[error.code ?? ""] ?? NOT_HTTP;
  if (error.code === "ECONNRESET" || !socket.writable) socket.destroy(error);
  else if (newest === undefined || (newest.writableFinished && newest.req.complete))
    lingeringClose(socket, failureText(failure), clock);
  // The requests before this one were whole: their answers still go out, then the connection ends.
  else if (newest.req.complete) newest.shouldKeepAlive = false;
  // Nobody sends several requests at once of which the last is broken.
  else if (newest.socket === null) socket.destroy();
  // A failure may be written only where nothing of an answer is.
  else lingeringClose(socket, newest.headersSent ? "" : failureText(failure), clock);
}

/** Answers a request whose address the app cannot read. */
export function answerNoAddress(socket: Duplex, clock: Clock): void {
  lingeringClose(socket, failureText(NO_ADDRESS), clock);
}

function failureText([status, message]: Failure): string {
  const body = JSON.stringify({ error: message, details: {}, code: status });
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\nx-content-type-options: nosniff\r\ncache-control: no-store\r\n` +
    `connection: close\r\n\r\n${body}`
  );
}
