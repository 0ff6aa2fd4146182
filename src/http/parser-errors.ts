import { STATUS_CODES } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";

/**
 * What node's parser met on a connection: not HTTP, too large a head, too slow a sender. No request came of it.
 * @param newest the answer to the connection's last request
 */
export function answerParserError(
  error: NodeJS.ErrnoException,
  socket: Duplex,
  newest: ServerResponse | undefined,
): void {
  const open = newest !== undefined && !newest.writableFinished;
  if (error.code === "ECONNRESET" || !socket.writable) socket.destroy(error);
  else if (!open) socket.end(failureText(error.code));
  // The requests before this one were whole: their answers still go out, then the connection ends.
  else if (newest.req.complete) newest.shouldKeepAlive = false;
  // The body of the newest is what broke. Its failure may only be written when it is its turn, and not begun.
  else if (newest.socket === socket && !newest.headersSent) socket.end(failureText(error.code));
  else socket.destroy(error);
}

/** `CONNECT` makes a server a proxy, which this one is not. */
export function answerConnect(_request: IncomingMessage, socket: Duplex): void {
  socket.end(
    rawAnswer(405, "CONNECT is not possible here.", "allow: GET, HEAD, POST, PUT, DELETE, OPTIONS\r\n"),
  );
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

function failureText(code: string | undefined): string {
  return rawAnswer(...describe(code));
}

function describe(code: string | undefined): [status: number, message: string] {
  switch (code) {
    case "HPE_HEADER_OVERFLOW":
      return [431, "The request's headers are too large."];
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return [413, "The extensions of the body's chunks are too large."];
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return [408, "The request did not arrive in time."];
    case undefined:
    default:
      return [400, "This is not a valid HTTP/1.1 request."];
  }
}

function failureBody(status: number, message: string): string {
  return JSON.stringify({ error: message, details: {}, code: status });
}

function rawAnswer(status: number, message: string, headers = ""): string {
  const body = failureBody(status, message);
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\ncontent-type: application/json\r\n` +
    `content-length: ${Buffer.byteLength(body)}\r\nx-content-type-options: nosniff\r\ncache-control: no-store\r\n` +
    `${headers}connection: close\r\n\r\n${body}`
  );
}
