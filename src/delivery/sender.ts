import { literalAddress } from "../domain/handler-url.ts";
import type { Clock } from "../runtime/clock.ts";
import { createConnections, type ConnectionOptions } from "./connections.ts";
import { attemptErrorCode } from "./error-code.ts";
import { Exchange, type SendResult } from "./exchange.ts";
import { portOf } from "./port.ts";

interface SendRequest {
  /** Absolute, `https:` or `http:`. */
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
  /** Ends the request as `interrupted`. */
  readonly signal: AbortSignal;
}

export interface Sender {
  /** Posts once. Never rejects: every way it can end is a value. */
  send(request: SendRequest): Promise<SendResult>;
  /** Origins that have a pool of connections. */
  origins(): number;
  /** Drops all connections; what is under way ends with an error. */
  close(): Promise<void>;
}

export interface SenderOptions extends ConnectionOptions {
  readonly clock: Clock;
  /** One deadline over look-up, connecting, headers and body. */
  readonly timeoutMs: number;
}

/**
 * Posts over HTTP/1.1. It follows no redirect, knows no proxy, always verifies certificates, decompresses nothing, and
 * reads no more of an answer than it keeps and a little to spare the connection.
 */
export function createSender(options: SenderOptions): Sender {
  const { clock, guard, timeoutMs } = options;
  const connections = createConnections(options);

  return {
    origins: () => connections.origins(),
    close: () => connections.close(),
    async send({ url: text, headers, body, signal }) {
      if (signal.aborted) return { kind: "error", errorCode: "interrupted" };
      if (!URL.canParse(text)) return { kind: "error", errorCode: "protocol_error" };
      const url = new URL(text);
      // The look-up that guards a connection never runs for a literal address.
      const literal = literalAddress(url);
      if (literal !== undefined && guard.check(literal, portOf(url)) !== undefined) {
        return { kind: "error", errorCode: "address_refused" };
      }
      const { pool, release } = connections.acquire(url);
      return new Promise((resolve) => {
        const exchange = new Exchange(resolve, () => {
          release();
          cancelTimer();
          signal.removeEventListener("abort", interrupt);
        });
        const interrupt = (): void => exchange.abort("interrupted");
        const cancelTimer = clock.setTimer(() => exchange.abort("timeout"), timeoutMs);
        signal.addEventListener("abort", interrupt, { once: true });
        try {
          pool.dispatch(
            { origin: url.origin, path: url.pathname + url.search, method: "POST", headers, body },
            exchange,
          );
        } catch (error) {
          exchange.abort(attemptErrorCode(error));
        }
      });
    },
  };
}
