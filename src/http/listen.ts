import cluster from "node:cluster";
import { createServer, type Server, type ServerOptions } from "node:http";
import {
  createServer as createHttpsServer,
  type Server as HttpsServer,
  type ServerOptions as HttpsServerOptions,
} from "node:https";
import { createServer as createNetServer, type Server as NetServer } from "node:net";
import { type Listener, listen } from "listhen";
import { EvregError } from "../domain/error.ts";

// listhen opens the port, and a server of node's with our limits takes the socket over. What listhen does that is wrong
// for a server is done otherwise here, and nowhere else:
// - It tries a port with a server of its own, and drops the error. So `probe` tries before it and has the reason.
// - It listens without a listener for errors. A port that is taken after its try would end the process, so `listenOnce`
//   catches that error.
// - It takes another port for one that browsers refuse, and another host for one that it does not know.
// - It puts a listener on each answer, to close servers in a way that is not used here. V8 may then take every request
//   for long-lived: they fill the heap until a full collection, for a fifth of the requests a second.
// - It opens a socket that can be handed on, which one of several processes (`app/processes.ts`) has none of: their first one listens
//   for them. So they listen without it.
// - It can be given a certificate for https, but none later, and no limits. So https listens without it.

/** What listhen takes for a host. */
const HOST = /^(?!-)[\d.:A-Za-z-]{1,63}(?<!-)$/;

/** How often to try for a free port: another process may take the one that was found free. */
const FREE_PORT_TRIES = 5;

const HANDSHAKE_MS = 10_000;

/**
 * A listening server that nothing answers on yet. `usage` for a host or port that cannot be, `conflict` for one that is
 * taken.
 * @param port 0 for any free one
 */
export async function listenAt(host: string, port: number, options: ServerOptions): Promise<Server> {
  mustBeHost(host);
  if (cluster.isWorker) {
    const own = createServer(options);
    await listenPlainly(own, host, port);
    return own;
  }
  const opened = opening.then(() => openPort(host, port));
  opening = opened.catch(() => undefined);
  const listener = await opened;
  const server = createServer(options);
  server.once("close", () => void listener.close());
  return new Promise((resolve) => server.listen(listener.server, () => resolve(server)));
}

/** @throws EvregError as `listenAt`; nothing listens after it */
export function mustBeFree(host: string, port: number): Promise<void> {
  mustBeHost(host);
  return probe(host, port);
}

function mustBeHost(host: string): void {
  if (HOST.test(host)) return;
  throw new EvregError(
    "usage",
    `${JSON.stringify(host)} is not a host to listen at. Set another with --host.`,
  );
}

/** One port is opened at a time: of two for one port, the second fails at its probe. */
let opening: Promise<unknown> = Promise.resolve();

/** Listens for https. */
export async function listenTlsAt(
  host: string,
  port: number,
  options: HttpsServerOptions,
): Promise<HttpsServer> {
  const server = createHttpsServer({ ...options, handshakeTimeout: HANDSHAKE_MS });
  await listenPlainly(server, host, port);
  return server;
}

async function openPort(host: string, port: number): Promise<Listener> {
  for (let tries = 1; ; tries += 1) {
    await probe(host, port);
    try {
      const listener = await listenOnce(host, port);
      if (port === 0 || listener.address.port === port) return listener;
      await listener.close();
    } catch (error) {
      if (port === 0 && tries < FREE_PORT_TRIES) continue;
      await probe(host, port);
      throw explain(error as NodeJS.ErrnoException, host, port);
    }
    throw new EvregError(
      "usage",
      `evreg cannot listen on port ${port}: browsers refuse it. Set another with --port.`,
    );
  }
}

/** @throws EvregError why nothing can listen there */
async function probe(host: string, port: number): Promise<void> {
  const server = createNetServer();
  await listenPlainly(server, host, port);
  await new Promise((resolve) => server.close(resolve));
}

function listenPlainly(server: NetServer, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void => reject(explain(error, host, port));
    server.once("error", fail).listen(port, host, () => {
      server.off("error", fail);
      resolve();
    });
  });
}

/** Rejects as well where listhen would end the process. */
async function listenOnce(host: string, port: number): Promise<Listener> {
  const unheard = Promise.withResolvers<never>();
  process.setUncaughtExceptionCaptureCallback((error: NodeJS.ErrnoException) => {
    process.setUncaughtExceptionCaptureCallback(null);
    if (error.syscall === "listen") unheard.reject(error);
    // Another error of the process ends it, as it would have without this.
    else
      setImmediate(() => {
        throw error;
      });
  });
  try {
    const listening = listen(() => undefined, {
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
    return await Promise.race([listening, unheard.promise]);
  } finally {
    process.setUncaughtExceptionCaptureCallback(null);
  }
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
