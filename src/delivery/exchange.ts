import type { IncomingHttpHeaders } from "node:http";
import { Socket } from "node:net";
import { type buildConnector, Client, type Dispatcher } from "undici";
import { type AttemptErrorCode, DELIVERY_LIMITS, type TlsReason } from "../domain/delivery.ts";
import { EvregError } from "../domain/error.ts";
import type { AttemptResult, ConnectionTimes } from "../store/queue.ts";
import { networkErrorCode } from "../domain/network-error.ts";
import { SEARCHED_BYTES } from "./redaction.ts";

/** How a request ended, in the words of an attempt's result: with the `statusCode` of an answer, or with an `errorCode`. */
export interface SendResult extends Pick<
  AttemptResult,
  "statusCode" | "response" | "errorCode" | "tlsReason" | "refusal" | "connection"
> {
  /** The answer's. */
  readonly headers?: IncomingHttpHeaders;
}

/** Up to here the rest of an answer is read and dropped, which is cheaper than a new connection. */
const MAX_READ_BYTES = 16 * 1_024;

/**
 * One request and its answer. It ends when the answer is complete, or enough of it was read. It can be aborted at any time, also
 * while the connection is made.
 */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly #ended: (result: SendResult, isReusable: boolean) => void;
  readonly #connection: HandlerConnection;
  readonly #chunks: Buffer[] = [];
  #readBytes = 0;
  #answer: { readonly statusCode: number; readonly headers: IncomingHttpHeaders } | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  /** The times of the connection, where it was made for this request. */
  #timing: ConnectionTimes | undefined;
  #writtenAtMs = 0;
  #isEnded = false;

  /**
   * @param connection that it goes over
   * @param ended called once, with the result, and with whether the connection may be reused
   */
  constructor(connection: HandlerConnection, ended: (result: SendResult, isReusable: boolean) => void) {
    this.#connection = connection;
    this.#ended = ended;
  }

  /** Ends it, as `errorCode` unless there is as much of an answer as is stored. */
  abort(errorCode: AttemptErrorCode = "interrupted"): void {
    if (this.#isEnded) return;
    this.#end(this.#hasEnough ? this.#answered() : { errorCode }, false);
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    this.#timing = this.#connection.takeTiming();
    if (this.#timing !== undefined) this.#writtenAtMs = performance.now();
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: IncomingHttpHeaders,
  ): void {
    // Of 1xx answers before the real one come no more than `MAX_EXCHANGE_BYTES`.
    if (statusCode < 200) return;
    if (this.#timing !== undefined) {
      this.#timing = { ...this.#timing, firstByteMs: performance.now() - this.#writtenAtMs };
    }
    this.#answer = { statusCode, headers };
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    const missing = SEARCHED_BYTES - this.#readBytes;
    // Copied, as the chunk may be a small part of a large buffer.
    if (missing > 0) this.#chunks.push(Buffer.from(chunk.subarray(0, missing)));
    this.#readBytes += chunk.byteLength;
    if (this.#readBytes > MAX_READ_BYTES) this.abort();
  }

  onResponseEnd(): void {
    this.#end(this.#answered(), true);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#hasEnough) return this.abort();
    const errorCode = attemptErrorCode(error);
    const tlsReason = errorCode === "tls_failed" ? { tlsReason: tlsReasonOf(error) } : {};
    const refusal = error instanceof EvregError ? { refusal: error.message } : {};
    this.#end({ errorCode, ...tlsReason, ...refusal }, false);
  }

  /** Whether more was read than is stored: what becomes of the rest makes no difference. */
  get #hasEnough(): boolean {
    return this.#readBytes > DELIVERY_LIMITS.responseBytes;
  }

  #answered(): SendResult {
    if (this.#answer === undefined) return { errorCode: "protocol_error" };
    const response = Buffer.concat(this.#chunks).toString("utf8");
    return { ...this.#answer, ...(response === "" ? {} : { response }) };
  }

  #end(result: SendResult, isReusable: boolean): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    // The rest of what has been read already is not to be parsed.
    if (!isReusable) this.#controller?.abort(new Error("no longer wanted"));
    this.#ended(this.#timing === undefined ? result : { ...result, connection: this.#timing }, isReusable);
  }
}

/**
 * How many bytes may be read from a connection for one request, wherever in the answer they are: a parser bounds headers
 * and hands on the body, and reads on without end through a reason phrase, the extensions of chunks or trailers. It is more
 * than headers and body may have, with what chunks of a few bytes add.
 */
const MAX_EXCHANGE_BYTES = 64 * 1_024;

export class HandlerConnection {
  readonly origin: string;
  readonly #client: Client;
  #socket: Socket | undefined;
  #exchange: Exchange | undefined;
  /** There only while the request is written that it was made for. */
  #timing: ConnectionTimes | undefined;
  /** When the connection was made, by `performance.now()`. */
  #madeAtMs = Infinity;
  #bytesBefore = 0;

  /** @param onClosed called when it is closed while it carries no request */
  constructor(
    origin: string,
    connect: buildConnector.connector,
    options: Client.Options,
    onClosed: () => void,
  ) {
    this.origin = origin;
    this.#client = new Client(origin, {
      ...options,
      connect: (target, callback) => this.#connect(connect, target, callback),
    });
    this.#client.on("disconnect", () => {
      if (this.#exchange === undefined) onClosed();
    });
  }

  /** Whether it is open, and was made less than `lifeMs` ago. */
  isUsable(lifeMs: number): boolean {
    const isOpen = this.#socket !== undefined && !this.#socket.destroyed && !this.#socket.readableEnded;
    return isOpen && performance.now() - this.#madeAtMs < lifeMs;
  }

  dispatch(request: Dispatcher.DispatchOptions, exchange: Exchange): void {
    this.#exchange = exchange;
    this.#client.dispatch(request, exchange);
  }

  /** The request is about to be written. Answers how the connection was made, if it was made for it. */
  takeTiming(): ConnectionTimes | undefined {
    this.#bytesBefore = this.#socket?.bytesRead ?? 0;
    return this.#timing;
  }

  release(): void {
    this.#exchange = undefined;
  }

  /** Ends it, also before it is made, and aborts the request that it carries. */
  destroy(): void {
    this.#exchange?.abort();
    this.#client.destroy(() => {});
    // undici forgets a socket that is not connected yet, and that would hold the process until its time is up.
    this.#socket?.destroy();
  }

  #connect(
    connect: buildConnector.connector,
    target: buildConnector.Options,
    callback: buildConnector.Callback,
  ): void {
    const startedMs = performance.now();
    let resolvedMs: number | undefined;
    // undici returns the socket although its types do not say so.
    const connecting: unknown = connect(target, (...[error, socket]) => {
      if (error !== null) return callback(error, null);
      this.#madeAtMs = performance.now();
      this.#socket = socket;
      const dnsMs = resolvedMs === undefined ? undefined : resolvedMs - startedMs;
      const connectMs = this.#madeAtMs - (resolvedMs ?? startedMs);
      this.#timing = { dnsMs, connectMs, firstByteMs: undefined };
      callback(null, socket);
      this.#timing = undefined;
      // undici's own listener comes first and has parsed by then what came: an answer that is there counts.
      socket.on("readable", () => {
        if (socket.bytesRead - this.#bytesBefore > MAX_EXCHANGE_BYTES)
          this.#exchange?.abort("protocol_error");
      });
    });
    if (!(connecting instanceof Socket)) return;
    this.#socket = connecting;
    // It is not emitted where the host is an address.
    connecting.once("lookup", () => (resolvedMs = performance.now()));
  }
}

/** The stored code for what Node, undici or the address guard reported when an attempt got no answer. */
export function attemptErrorCode(error: unknown): AttemptErrorCode {
  return error instanceof EvregError ? "address_refused" : networkErrorCode(error);
}

/** What OpenSSL and Node call it. */
const BY_CODE: Readonly<Record<string, TlsReason>> = {
  CERT_HAS_EXPIRED: "expired",
  CERT_NOT_YET_VALID: "not_yet_valid",
  ERR_TLS_CERT_ALTNAME_INVALID: "wrong_name",
  HOSTNAME_MISMATCH: "wrong_name",
  DEPTH_ZERO_SELF_SIGNED_CERT: "self_signed",
  SELF_SIGNED_CERT_IN_CHAIN: "unknown_authority",
  UNABLE_TO_GET_ISSUER_CERT: "unknown_authority",
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: "unknown_authority",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: "unknown_authority",
  CERT_UNTRUSTED: "unknown_authority",
};

/** Why TLS failed, of an error that `attemptErrorCode` calls `tls_failed`. */
export function tlsReasonOf(error: unknown): TlsReason {
  // The last of several addresses that is known says why, as for the code.
  if (error instanceof AggregateError) {
    const reasons = error.errors.map(tlsReasonOf);
    return reasons.findLast((reason) => reason !== "certificate_refused") ?? "certificate_refused";
  }
  const { code = "" } = error as NodeJS.ErrnoException;
  const isHandshake = /^(?:EPROTO$|ERR_SSL_|ERR_TLS_)/.test(code);
  return BY_CODE[code] ?? (isHandshake ? "handshake_failed" : "certificate_refused");
}
