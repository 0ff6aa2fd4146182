import type { DeliveryConfig } from "../config/schema.ts";
import { createAddressRules } from "../domain/addresses.ts";
import { type Clock, Timeouts } from "../runtime/clock.ts";
import { createAddressGuard } from "./address-guard.ts";
import { type ConnectionOptions, createConnections, destinationOf } from "./connection-pools.ts";
import { createHostNames } from "./dns/resolver.ts";
import { type Abortable, attemptErrorCode, Exchange, type SendResult } from "./exchange.ts";

interface SendRequest {
  /** Absolute, `https:` or `http:`. */
  readonly url: string;
  readonly headers: Record<string, string>;
  readonly body: Buffer;
  /** Instead of the sender's. */
  readonly timeoutMs?: number;
}

export interface Sender {
  /**
   * Posts once. Every way it can end is a value, which `done` gets once, before this returns when nothing can be sent.
   * @returns ends the request as `interrupted`
   */
  send(request: SendRequest, done: (result: SendResult) => void): Abortable;
  /** Origins to which there are connections. */
  origins(): number;
  /** Drops all connections; their requests end with an error. */
  close(): void;
}

export interface SenderOptions extends ConnectionOptions {
  readonly clock: Clock;
  /** One deadline over look-up, connecting, headers and body. The first two have no longer, whatever a request is given. */
  readonly timeoutMs: number;
}

const ENDED: Abortable = { abort: () => {} };

/**
 * Posts over HTTP/1.1. It follows no redirect, knows no proxy, always verifies certificates, decompresses nothing, and
 * reads no more of an answer than is stored and a little to spare the connection.
 */
export function createSender(options: SenderOptions): Sender {
  const { clock, timeoutMs: usualMs } = options;
  const connections = createConnections(options);
  const timeouts = new Timeouts(clock);

  return {
    origins: () => connections.origins(),
    close: () => connections.close(),
    send({ url, headers, body, timeoutMs = usualMs }, done) {
      const destination = destinationOf(url);
      if (destination === undefined) {
        done({ kind: "error", errorCode: "protocol_error" });
        return ENDED;
      }
      const { origin, path } = destination;
      const exchange = new Exchange(done, (connection, isReusable) => {
        cancelTimeout();
        connections.ended(destination, connection, isReusable);
      });
      const cancelTimeout = timeouts.start(timeoutMs, () => exchange.abort("timeout"));
      try {
        connections.send(destination, { origin, path, method: "POST", headers, body }, exchange);
      } catch (error) {
        exchange.abort(attemptErrorCode(error));
      }
      return exchange;
    },
  };
}

export interface GuardedSenderDependencies {
  readonly clock: Clock;
  readonly config: Pick<DeliveryConfig, "timeoutMs" | "allowHttp" | "allowNetworks">;
  /** How many connections to one origin there may be. With fewer than attempts, handlers that hang could take them all. */
  readonly maxPerOrigin: number;
  /** What this service listens on, where nothing is sent to. */
  readonly ownAddresses: () => readonly string[];
  /** PEM of a certificate authority to trust instead of the system's. */
  readonly ca?: string;
  /** DNS servers to use instead of the system's, as `address:port`. */
  readonly dnsServers?: readonly string[];
}

/** A sender that looks names up by its own means and connects only where the configuration lets deliveries go. */
export function createGuardedSender(dependencies: GuardedSenderDependencies): Sender {
  const { clock, config, maxPerOrigin, ownAddresses, ca, dnsServers } = dependencies;
  const { timeoutMs, allowHttp, allowNetworks } = config;
  const names = createHostNames({
    clock,
    withinMs: timeoutMs,
    ...(dnsServers === undefined ? {} : { servers: dnsServers }),
  });
  const rules = createAddressRules(allowNetworks);
  const sender = createSender({
    clock,
    guard: createAddressGuard({ rules, ownAddresses, resolve: names.resolve }),
    allowHttp,
    timeoutMs,
    maxPerOrigin,
    ...(ca === undefined ? {} : { ca }),
  });
  return {
    ...sender,
    close() {
      sender.close();
      names.close();
    },
  };
}
