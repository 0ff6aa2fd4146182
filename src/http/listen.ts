import { AsyncLocalStorage } from "node:async_hooks";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { RequestListener, Server, ServerOptions } from "node:http";
import {
  createServer as createHttpsServer,
  type Server as HttpsServer,
  type ServerOptions as HttpsServerOptions,
} from "node:https";
import type { Server as NetServer } from "node:net";
import { listen } from "listhen";
import { EvregError } from "../domain/error.ts";

/** What listhen takes for a host; with anything else it goes on with a host of its own choice. */
const HOST = /^(?!-)[\d.:A-Za-z-]{1,63}(?<!-)$/;

/** How often to try for a free port: another process may take the one that was found free. */
const FREE_PORT_TRIES = 5;

const HANDSHAKE_MS = 10_000;

/** Node tells here of each server before it listens, also of those that listhen makes and keeps to itself. */
const LISTEN_STARTS = "tracing:net.server.listen:asyncStart";

/** Tells the servers of one attempt from all others of the process. */
const attempts = new AsyncLocalStorage<symbol>();

/**
 * A listening HTTP server that nothing answers on yet. `usage` for a host or port that cannot be, `conflict` for one
 * that is taken.
 * @param port 0 for any free one
 */
export async function listenAt(host: string, port: number, options: ServerOptions): Promise<Server> {
  if (!HOST.test(host)) {
    throw new EvregError(
      "usage",
      `${JSON.stringify(host)} is not a host to listen at. Set another with --host.`,
    );
  }
  for (let tries = 1; ; tries += 1) {
    try {
      return await listenOnce(host, port, options);
    } catch (error) {
      if (port === 0 && tries < FREE_PORT_TRIES && error instanceof EvregError && error.code === "conflict")
        continue;
      throw error;
    }
  }
}

/** The same for https, which listhen could only be given a certificate for, and no limits. */
export async function listenTlsAt(
  host: string,
  port: number,
  options: HttpsServerOptions,
): Promise<HttpsServer> {
  const server = createHttpsServer({ ...options, handshakeTimeout: HANDSHAKE_MS });
  return new Promise((resolve, reject) => {
    const refuse = (error: NodeJS.ErrnoException): void => reject(explain(error, host, port));
    server.once("error", refuse);
    server.listen(port, host, () => {
      server.off("error", refuse);
      resolve(server);
    });
  });
}

async function listenOnce(host: string, port: number, options: ServerOptions): Promise<Server> {
  const attempt = Symbol("attempt");
  let refusal: NodeJS.ErrnoException | undefined;
  let onRefusal: (() => void) | undefined;
  // listhen first tries a port with a server of its own, swallows why that failed, and then listens without waiting for
  // an error, which would end the process if the port was taken in between. Hence this ear on both.
  const hearErrors = (message: unknown): void => {
    if (attempts.getStore() !== attempt) return;
    const { server } = message as { server: NetServer };
    server.on("error", (error) => {
      refusal = error;
      onRefusal?.();
    });
  };
  subscribe(LISTEN_STARTS, hearErrors);
  try {
    const listening = attempts.run(attempt, listen, asListener(options), {
      hostname: host,
      port: port === 0 ? { port, random: true } : port,
      // Without `isProd` a busy port moves to another; `isTest` does nothing but keep it quiet.
      isProd: true,
      isTest: true,
      showURL: false,
      autoClose: false,
      clipboard: false,
      open: false,
      https: false,
      tunnel: false,
      ws: false,
    });
    const refused = new Promise<never>((_, reject) => {
      onRefusal = () => setImmediate(reject, refusal);
    });
    const { server, address } = await Promise.race([listening, refused]);
    if (port !== 0 && address.port !== port) {
      server.close();
      throw new EvregError(
        "usage",
        `evreg cannot listen on port ${port}: browsers refuse it. Set another with --port.`,
      );
    }
    // listhen has its own way of closing servers, which is not used here. It puts a listener on each answer, and with that
    // V8 may come to take every request for long-lived: they then fill the heap until a full collection, for a fifth of
    // the requests a second.
    server.removeAllListeners("request");
    return server;
  } catch (error) {
    throw refusal === undefined ? error : explain(refusal, host, port);
  } finally {
    unsubscribe(LISTEN_STARTS, hearErrors);
  }
}

/**
 * listhen hands its first argument on to `createServer`, which takes the server's options in that place too; some of
 * them cannot be set later. The listeners for requests are added once it listens.
 */
function asListener(options: ServerOptions): RequestListener {
  return options as unknown as RequestListener;
}

function explain(refusal: NodeJS.ErrnoException, host: string, port: number): EvregError {
  const where = port === 0 ? host : `${host}:${port}`;
  const details = { host, port };
  const cause = { cause: refusal };
  switch (refusal.code) {
    case "EADDRINUSE":
      return new EvregError(
        "conflict",
        `${where} is taken by another process. Stop that one, or choose another port with --port.`,
        details,
        cause,
      );
    case "EADDRNOTAVAIL":
    case "ENOTFOUND":
    case "EAI_AGAIN":
      return new EvregError(
        "usage",
        `${host} is not an address of this machine. Set another with --host, such as 127.0.0.1, or 0.0.0.0 for all.`,
        details,
        cause,
      );
    case "EACCES":
      return new EvregError(
        "usage",
        `This user may not listen on ${where}. Choose a port from 1024 up with --port.`,
        details,
        cause,
      );
    case undefined:
    default:
      return new EvregError("usage", `evreg cannot listen on ${where}: ${refusal.message}.`, details, cause);
  }
}
