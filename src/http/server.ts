import type { H3 } from "h3";
import { toNodeHandler } from "h3/node";
import type { IncomingMessage, RequestListener, Server, ServerOptions, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { type Certificate, type CertificateFiles, readCertificate } from "../runtime/certificate.ts";
import { type Clock, systemClock } from "../runtime/clock.ts";
import { localAddresses, urlOf } from "../runtime/local-addresses.ts";
import { type Logger, silentLogger } from "../runtime/logger.ts";
import {
  answerNoAddress,
  answerParserError,
  type ConnectionLimits,
  Connections,
  inTurns,
  isEnding,
  newestAnswer,
} from "./connections.ts";
import { listenAt } from "./listen.ts";

export interface ListenersOptions extends Omit<ServeOptions, "certificate"> {
  /** The files of https; both or none. */
  readonly tls: Partial<CertificateFiles>;
}

/** One listener, and with https a second one for commands on this machine. */
export interface Listeners extends Omit<HttpListener, "useCertificate"> {
  /** Where a command on this machine reaches it. */
  readonly localUrl: string;
  /** Its port with that of the second listener. */
  readonly ownPorts: readonly number[];
  /** When the certificate in use ends, in milliseconds since the epoch; `undefined` for http. */
  certificateEndsMs(): number | undefined;
  /** Renews the certificate, see `RunningServer`. */
  readonly renewCertificate: (tls: ListenersOptions["tls"]) => void;
}

/** @throws EvregError as `serveHttp` and `readCertificate` */
export async function openListeners({ tls, ...options }: ListenersOptions): Promise<Listeners> {
  let certificate = certificateOf(tls);
  const main = await serveHttp(certificate === undefined ? options : { ...options, certificate });
  const all = [main];
  if (certificate !== undefined) {
    // A certificate is not made out for loopback addresses, and a command must not guess whom to trust.
    const local = serveHttp({ ...options, host: "127.0.0.1", port: 0 });
    all.push(await local.catch((error: unknown) => main.close(0).then(() => Promise.reject(error))));
  }
  return {
    ...main,
    localUrl: all.at(-1)!.url,
    ownPorts: all.map(({ port }) => port),
    certificateEndsMs: () => certificate?.endsMs,
    renewCertificate(files) {
      const renewed = certificate && certificateOf(files);
      if (renewed === undefined) return;
      main.useCertificate(renewed);
      certificate = renewed;
    },
    async close(deadlineMs) {
      await Promise.all(all.map((listener) => listener.close(deadlineMs)));
    },
  };
}

function certificateOf({ cert, key }: ListenersOptions["tls"]): Certificate | undefined {
  return cert === undefined || key === undefined ? undefined : readCertificate({ cert, key });
}

export interface HttpLimits extends ConnectionLimits {
  /** The time from a connection's start, or a request's first byte, to the end of its headers. */
  readonly headersTimeoutMs: number;
  /** The time from a request's first byte to the end of its body. */
  readonly requestTimeoutMs: number;
  /** The time between two requests of one connection. */
  readonly keepAliveTimeoutMs: number;
  /** How often the first two are checked; they end this much late at most. */
  readonly checkEveryMs: number;
  readonly maxHeaderBytes: number;
}

const HTTP_LIMITS: HttpLimits = {
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  keepAliveTimeoutMs: 10_000,
  checkEveryMs: 1_000,
  maxHeaderBytes: 16 * 1024,
  maxConnections: 4_096,
  maxOfAddress: 3_072,
  reserved: 64,
};

const WARN_EVERY_MS = 10_000;

export interface ServeOptions {
  readonly app: H3;
  /** A name or an address of this machine; `0.0.0.0` or `::` for all of its addresses. */
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly limits?: Partial<HttpLimits>;
  /** The certificate of https. */
  readonly certificate?: Certificate;
}

export interface HttpListener {
  /** Without a slash at the end. */
  readonly url: string;
  readonly port: number;
  /** Every `address:port` it answers at; no names. */
  readonly addresses: readonly string[];
  /** Takes a certificate for new connections; only of https. */
  useCertificate(certificate: Certificate): void;
  /**
   * Takes no more connections, lets running requests finish, and ends what still runs after `deadlineMs`.
   * Safe to call twice; the shorter deadline counts.
   */
  close(deadlineMs: number): Promise<void>;
}

/** `usage` for an address that cannot be listened at, `conflict` for one that is taken: no other is used in its place. */
export async function serveHttp(options: ServeOptions): Promise<HttpListener> {
  const { app, host, port, logger = silentLogger, clock = systemClock } = options;
  const limits = { ...HTTP_LIMITS, ...options.limits };
  const { certificate } = options;
  const server = await listenAt(host, port, serverOptions(limits), certificate);
  server.on("error", (error) => logger.error({ err: error }, "the HTTP listener failed"));
  const warn = warnSometimes(logger, clock, limits.maxConnections);
  const connections = new Connections(server, limits, clock, warn);
  answerRequests(server, connections, toNodeHandler(app), clock);
  server.on("clientError", (error, socket) => {
    const { code = "" } = error as NodeJS.ErrnoException;
    // What came on an encrypted connection and is no TLS cannot be answered.
    if (/^ERR_(?:SSL|TLS)_/.test(code)) socket.destroy();
    else answerParserError(error, socket, newestAnswer(socket), clock);
  });
  // Where it really listens, which only the socket knows when `host` is a name or the port any free one.
  const bound = server.address() as AddressInfo;
  return {
    url: urlOf(bound, certificate === undefined ? "http" : "https"),
    useCertificate: ({ cert, key }) => server.setSecureContext?.({ cert, key }),
    port: bound.port,
    addresses: localAddresses(bound),
    close: (deadlineMs) => connections.close(deadlineMs),
  };
}

function serverOptions(limits: HttpLimits): ServerOptions {
  return {
    headersTimeout: limits.headersTimeoutMs,
    requestTimeout: limits.requestTimeoutMs,
    keepAliveTimeout: limits.keepAliveTimeoutMs,
    connectionsCheckingInterval: limits.checkEveryMs,
    maxHeaderSize: limits.maxHeaderBytes,
    // The app refuses a missing `Host` itself: node would do it with an empty body.
    requireHostHeader: false,
  };
}

/** One line for a flood of refused connections, not one for each. */
function warnSometimes(logger: Logger, clock: Clock, maxConnections: number): () => void {
  let refused = 0;
  let warnedMs = -Infinity;
  return () => {
    refused += 1;
    const nowMs = clock.monotonicMs();
    if (nowMs - warnedMs < WARN_EVERY_MS) return;
    logger.warn({ maxConnections, refused }, "connections were refused: too many are open");
    warnedMs = nowMs;
    refused = 0;
  };
}

function answerRequests(
  server: Server,
  connections: Connections,
  handle: RequestListener,
  clock: Clock,
): void {
  const start = inTurns((request, response) => {
    if (connections.isClosing) response.shouldKeepAlive = false;
    try {
      handle(request, response);
    } catch {
      // srvx puts `Host` and path into a URL before h3 sees the request, and that can throw.
      answerNoAddress(request.socket, clock);
    }
  });
  const onRequest = (request: IncomingMessage, response: ServerResponse): void => {
    if (!isEnding(request.socket)) start(request, response);
  };
  server.on("request", onRequest);
  // `Expect: 100-continue`: the body reader says when to go on, so that a refused caller need not send its body.
  server.on("checkContinue", onRequest);
  // Any other expectation may be ignored (RFC 9110, 10.1.1); node would answer 417 without a body.
  server.on("checkExpectation", onRequest);
}
