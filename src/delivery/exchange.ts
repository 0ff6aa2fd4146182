import type { IncomingHttpHeaders } from "node:http";
import type { Dispatcher } from "undici";
import { DELIVERY_LIMITS, type AttemptErrorCode } from "../domain/delivery.ts";
import { EvregError } from "../domain/error.ts";
import type { ConnectionTimes } from "../store/finishes.ts";
import type { Connection } from "./connection.ts";
import { attemptErrorCode } from "./error-code.ts";
import type { Interruptible } from "./in-flight.ts";
import { responseText } from "./response-text.ts";

/** How one request ended. */
export type SendResult =
  | {
      readonly kind: "answered";
      readonly statusCode: number;
      readonly retryAfter?: string;
      /** The beginning of the answer, see `responseText`. */
      readonly response?: string;
      readonly connection?: ConnectionTimes;
    }
  | {
      readonly kind: "error";
      readonly errorCode: AttemptErrorCode;
      /** Why nothing may be sent to the address. */
      readonly refusal?: string;
      readonly connection?: ConnectionTimes;
    };

/** A longer answer costs its connection; up to here the rest is read and dropped, which is cheaper than a new one. */
const MAX_READ_BYTES = 16 * 1_024;
/** 1xx answers before the real one. */
const MAX_INFORMATIONAL = 16;

/**
 * One request and what comes back, as undici calls it.
 *
 * It is settled as soon as 1 KiB of the answer is there or the answer is complete, and ended when the connection is free
 * again or gone. Aborting works at any time, also while the connection is made.
 */
export class Exchange implements Dispatcher.DispatchHandler, Interruptible {
  readonly #settle: (result: SendResult) => void;
  readonly #ended: (connection: Connection | undefined, isReusable: boolean) => void;
  readonly #kept: Buffer[] = [];
  #keptBytes = 0;
  #readBytes = 0;
  #informational = 0;
  #answer: { statusCode: number; retryAfter?: string } | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  #connection: Connection | undefined;
  /** Of a connection that was made for this request. */
  #made: (Omit<ConnectionTimes, "firstByteMs"> & { firstByteMs: number | undefined }) | undefined;
  #writtenAtMs = 0;
  #isSettled = false;
  #isEnded = false;

  /**
   * @param settle called once, with the result
   * @param ended called once, after which nothing more is read or written, with the connection if it came to have one, and
   * whether that may be used again
   */
  constructor(
    settle: (result: SendResult) => void,
    ended: (connection: Connection | undefined, isReusable: boolean) => void,
  ) {
    this.#settle = settle;
    this.#ended = ended;
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** It is about to be sent over this one. */
  carriedBy(connection: Connection): void {
    this.#connection = connection;
  }

  interrupt(): void {
    this.abort("interrupted");
  }

  /** Ends it, as `errorCode` unless it is settled already. */
  abort(errorCode: AttemptErrorCode): void {
    this.#result({ kind: "error", errorCode });
    this.#drop();
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    const made = this.#connection?.began();
    if (made === undefined) return;
    this.#made = { ...made, firstByteMs: undefined };
    this.#writtenAtMs = performance.now();
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    statusCode: number,
    headers: IncomingHttpHeaders,
  ): void {
    if (statusCode < 200) {
      this.#informational += 1;
      if (this.#informational > MAX_INFORMATIONAL) this.abort("protocol_error");
      return;
    }
    if (this.#made !== undefined) this.#made.firstByteMs = performance.now() - this.#writtenAtMs;
    const retryAfter: unknown = headers["retry-after"];
    this.#answer = { statusCode, ...(typeof retryAfter === "string" ? { retryAfter } : {}) };
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#readBytes += chunk.byteLength;
    const missing = DELIVERY_LIMITS.responseBytes - this.#keptBytes;
    if (missing > 0) {
      // Copied, as the chunk may be a small part of a large buffer.
      this.#kept.push(Buffer.from(chunk.subarray(0, missing)));
      this.#keptBytes += Math.min(missing, chunk.byteLength);
    }
    if (this.#readBytes > DELIVERY_LIMITS.responseBytes) this.#answered(true);
    if (this.#readBytes > MAX_READ_BYTES) this.#drop();
  }

  onResponseEnd(): void {
    this.#answered(false);
    this.#end(true);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    const refusal = error instanceof EvregError ? { refusal: error.message } : {};
    this.#result({ kind: "error", errorCode: attemptErrorCode(error), ...refusal });
    this.#end(false);
  }

  #answered(cut: boolean): void {
    if (this.#answer === undefined) return this.#result({ kind: "error", errorCode: "protocol_error" });
    const response = this.#keptBytes === 0 ? undefined : responseText(Buffer.concat(this.#kept), cut);
    this.#result({ kind: "answered", ...this.#answer, ...(response === undefined ? {} : { response }) });
  }

  #result(result: SendResult): void {
    if (this.#isSettled) return;
    this.#isSettled = true;
    this.#settle(this.#made === undefined ? result : { ...result, connection: this.#made });
  }

  #drop(): void {
    // The rest of what has been read already is not to be parsed.
    this.#controller?.abort(new Error("no longer wanted"));
    this.#end(false);
  }

  #end(isReusable: boolean): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#ended(this.#connection, isReusable);
  }
}
