import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Duplex } from "node:stream";
import type { Clock } from "../runtime/clock.ts";
import { isEnding, lingeringClose } from "./connections.ts";

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
  if (error.code === "ECONNRESET" || !socket.writable) socket.destroy(error);
  else if (newest === undefined || (newest.writableFinished && newest.req.complete))
    lingeringClose(socket, failureText(error.code), clock);
  // The requests before this one were whole: their answers still go out, then the connection ends.
  else if (newest.req.complete) newest.shouldKeepAlive = false;
  // Nobody sends several requests at once of which the last is broken.
  else if (newest.socket === null) socket.destroy();
  // A failure may be written only where nothing of an answer is.
  else lingeringClose(socket, newest.headersSent ? "" : failureText(error.code), clock);
}

/** A failure answered before there was an app to answer it. */
export function rawFailure(response: ServerResponse, status: number, message: string): void {
  const body = failureBody(status, message);
  response.writeHead(status, {
    "content-type": "application/json",
    "content-length": Buffer.byteLength(body),
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    connection: "close",
  });
  response.end(body);
}

const FAILURES: Readonly<Record<string, readonly [status: number, message: string]>> = {
  HPE_HEADER_OVERFLOW: [
    431,
    "The address and the headers of the request are too large; together they may have 16 KiB.",
  ],
  ERR_HTTP_REQUEST_TIMEOUT: [408, "The request did not arrive in time."],
};
const NOT_HTTP = [400, "This is not a valid HTTP/1.1 request."] as const;

function failureText(code: string | undefined): string {
  const [status, message] = FAILURES[code ?? ""] ?? NOT_HTTP;
  const body = failureBody(status, message);
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\nx-content-type-options: nosniff\r\ncache-control: no-store\r\n` +
    `connection: close\r\n\r\n${body}`
  );
}

function failureBody(status: number, message: string): string {
  return JSON.stringify({ error: message, details: {}, code: status });
}
