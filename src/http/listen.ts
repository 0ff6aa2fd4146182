import cluster from "node:cluster";
import { createServer, type Server, type ServerOptions } from "node:http";
import { createServer as createHttpsServer, type Server as HttpsServer } from "node:https";
import { createServer as createNetServer, type Server as NetServer } from "node:net";
import { listen } from "listhen";
import { EvregError } from "../domain/error.ts";
import type { Certificate } from "../runtime/certificate.ts";

// listhen opens the port, and a server of node's with our limits takes the socket over. What listhen does that is wrong
// for a server is done otherwise here, and nowhere else:
// - It does not say why it cannot listen, and takes another host for one that it does not know. So `mustBeFree` tries before.
// - It takes another port for one that browsers refuse.
// - For any free port it tries one and then listens on it, when another process may have it. So that is opened without it.
// - It puts a listener on each answer, to close servers in a way that is not used here. V8 may then take every request
//   for long-lived: they fill the heap until a full collection, for a fifth of the requests a second.
// - It opens a socket that can be handed on, which one of several processes (`app/processes.ts`) has none of: their first one listens
//   for them. So they listen without it.
// - It can be given a certificate for https, but none later, and no limits. So https listens without it.

/** What listhen takes for a host. */
const HOST = /^(?!-)[\d.:A-Za-z-]{1,63}(?<!-)$/;

const HANDSHAKE_MS = 10_000;

/** A server of http, or of https, whose certificate can be changed. */
export type ListeningServer = Server & Partial<Pick<HttpsServer, "setSecureContext">>;

/**
 * A listening server that nothing answers on yet. `usage` for a host or port that cannot be, `conflict` for one that is
 * taken.
 * @param port 0 for any free one
 * @param certificate for https
 */
export async function listenAt(
  host: string,
  port: number,
  options: ServerOptions,
  certificate?: Certificate,
): Promise<ListeningServer> {
  if (certificate !== undefined) {
    const { cert, key } = certificate;
    const secure = createHttpsServer({ ...options, handshakeTimeout: HANDSHAKE_MS, cert, key });
    return listenPlainly(secure, host, port);
  }
  const server = createServer(options);
  if (cluster.isWorker || port === 0) return listenPlainly(server, host, port);
  await mustBeFree(host, port);
  const listener = await listen(() => undefined, {
    hostname: host,
    port,
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
  if (listener.address.port !== port) {
    await listener.close();
    const message = `evreg cannot listen on port ${port}: browsers refuse it. Set another with --port.`;
    throw new EvregError("usage", message);
  }
  server.once("close", () => void listener.close());
  return new Promise((resolve) => server.listen(listener.server, () => resolve(server)));
}

/** @throws EvregError as `listenAt`; nothing listens after it */
export async function mustBeFree(host: string, port: number): Promise<void> {
  const server = await listenPlainly(createNetServer(), host, port);
  await new Promise((resolve) => server.close(resolve));
}

function listenPlainly<S extends NetServer>(server: S, host: string, port: number): Promise<S> {
  if (!HOST.test(host)) {
    const why = `${JSON.stringify(host)} is not a host to listen at. Set another with --host.`;
    throw new EvregError("usage", why);
  }
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException): void => reject(explain(error, host, port));
    server.once("error", fail).listen(port, host, () => {
      server.off("error", fail);
      resolve(server);
    });
  });
}

const UNKNOWN_HOSTS: ReadonlySet<unknown> = new Set(["EADDRNOTAVAIL", "ENOTFOUND", "EAI_AGAIN"]);

function explain(refusal: NodeJS.ErrnoException, host: string, port: number): EvregError {
  const where = port === 0 ? host : `${host}:${port}`;
  const { code, message } = refusal;
  if (code === "EADDRINUSE") {
    const advice = `${where} is taken by another process. Stop that one, or choose another port with --port.`;
    return new EvregError("conflict", advice, { host, port }, { cause: refusal });
  }
  let why = `evreg cannot listen on ${where}: ${message}.`;
  if (UNKNOWN_HOSTS.has(code)) {
    why = `${host} is not an address of this machine. Set another with --host, such as 127.0.0.1, or 0.0.0.0 for all.`;
  } else if (code === "EACCES") {
    why = `This user may not listen on ${where}. Choose a port from 1024 up with --port.`;
  }
  return new EvregError("usage", why, { host, port }, { cause: refusal });
}
