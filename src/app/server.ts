import { existsSync } from "node:fs";
import type { Config } from "../config/keys.ts";
import { isLoopbackHost } from "../config/values.ts";
import { LOOPBACK_NETWORKS } from "../domain/addresses.ts";
import { EvregError } from "../domain/error.ts";
import type { Finding } from "../domain/operations.ts";
import { hashToken } from "../domain/token-secret.ts";
import { LOCAL_OWNER } from "../domain/token.ts";
import type { Evreg } from "../evreg.ts";
import type { Listeners } from "../http/server.ts";
import { readAuthorities } from "../runtime/certificate.ts";
import { readTokenFile, tokenFileOf, writeTokenFile } from "../runtime/find-server.ts";
import { compactHeap, onIdle, threadCpuMs } from "../runtime/heap.ts";
import { isOwnerAlive, readOwner, writeOwner } from "../runtime/owner-file.ts";
import type { Service } from "../service/service.ts";
import type { Store } from "../store/store.ts";
import { type AppOptions, compose, storeBegins } from "./compose.ts";
import { certificateFindings, permissionsFinding, transportFindings } from "./doctor-findings.ts";

// Composition root: the one place that knows every part. Parts are loaded when they are needed, so that commands which
// act on another server never load them.

export { findServer } from "../runtime/find-server.ts";
export { databaseName } from "./compose.ts";

/** Looks at the form of a data folder's file, or brings it up to date, without serving it. */
export const loadMigrations = () => import("../store/libsql/open.ts");

/** Looks through a data file that nobody has open, such as a backup. */
export const loadFileChecks = () => import("../store/libsql/file-task.ts");

/** Puts a backup into a data folder that nobody has open. */
export const loadRestore = () => import("../store/libsql/files/restore.ts");

/** Moves data from a folder into a database, or back. */
export const loadMove = () => import("../store/move/move.ts");

export interface StartOptions extends AppOptions {
  /** Serves one's own machine: loopback only, no token, `http:` and loopback handlers allowed. */
  readonly dev?: boolean;
  /** Whether it starts without the writes that a damaged log no longer holds, which is refused otherwise. */
  readonly acceptsLoss?: boolean;
  /** Called at most once, when the store can never commit again. Whoever started the server then stops it and fails. */
  readonly onFatal?: (error: EvregError) => void;
}

export interface RunningServer {
  /** Where it answers; for a listener on all addresses, the loopback one. */
  readonly url: string;
  /** Each `address:port` it answers at; with a wildcard, that as well. */
  readonly addresses: readonly string[];
  /** The port for this process, with every right. */
  readonly evreg: Evreg;
  /**
   * Takes the certificate of these files for connections from now on. Nothing for a server that began without one.
   * @throws EvregError `usage` when they cannot be used; it then goes on with what it has
   */
  renewCertificate(tls: Config["tls"]): void;
  /** Where the first admin token is; absent when none is needed, or no such file is there whose token still holds. */
  readonly tokenFile?: string;
  /**
   * Takes no more requests, finishes or returns what is in flight within `shutdownGraceMs`, and releases the data
   * folder. Every call answers the same stop.
   */
  stop(): Promise<void>;
}

/**
 * Starts the whole server on a data folder. What was started is undone when a later step fails.
 * @throws EvregError `conflict` when the folder or the port is taken, `usage` for a host `dev` refuses, and those of the store
 */
export async function startServer(options: StartOptions): Promise<RunningServer> {
  const { logger, version } = options;
  const config = options.dev === true ? devConfig(options.config) : options.config;
  const undo: (() => Promise<void>)[] = [];
  let hasStoreFailed = false;
  const onFatal = (error: EvregError): void => {
    hasStoreFailed = true;
    options.onFatal?.(error);
  };
  try {
    await checkFirstStart(config);
    const authorities = config.delivery.ca;
    const ca = authorities === undefined ? undefined : readAuthorities("delivery.ca", authorities);
    let listeners: Listeners | undefined;
    const findings = (): readonly Finding[] =>
      certificateFindings(listeners?.certificateEndsMs(), clock.now());
    const composing = whenFree(config.data, SERVER_WAIT_MS, () =>
      compose({ ...options, config, command: "serve", onFatal, findings }),
    );
    const loading = storeBegins().then(loadServerParts);
    const composed = await composing;
    const { service, store, background, owner, published, delivered } = composed;
    const { offThread, clock, random } = composed;
    undo.push(() => store.close());
    const permissions = permissionsFinding(config.data);
    if (permissions.status !== "ok") {
      logger.warn({ data: config.data }, `${permissions.found} ${permissions.remedy}`);
    }
    for (const { found, remedy } of transportFindings(config)) {
      logger.warn({ host: config.host }, `${found} ${remedy}`);
    }
    const tokenFile = config.auth.mode === "token" ? await firstToken(service, store, config) : undefined;

    const [
      { createHttpApp },
      { openListeners },
      { Engine },
      { ReplayRunner },
      { createRetention, createSubscriptionExpiry },
    ] = await loading;
    const { auth, limits, ui } = config;
    const ending = new AbortController();
    const app = createHttpApp({
      service,
      config: { auth, limits, ui, hasTokenFile: tokenFile !== undefined },
      logger,
      clock,
      version,
      counts: published,
      stopping: ending.signal,
    });
    const { host, port, tls } = config;
    const http = await openListeners({ app, host, port, tls, logger, clock });
    listeners = http;
    undo.push(() => http.close(0));
    writeOwner(config.data, { ...owner, url: http.localUrl }, logger);

    const engine = new Engine({
      store: store.queue,
      node: store.node,
      clock,
      random,
      logger,
      config: config.delivery,
      ownPorts: http.ownPorts,
      version,
      ca,
      longChecks: offThread,
      counts: delivered,
      onResult: service.feed.ended,
    });
    const replays = new ReplayRunner({
      store: store.replays,
      node: store.node,
      clock,
      logger,
      wake(queued) {
        published.replayedDeliveries += queued;
        background.engine?.wake();
      },
    });
    background.engine = engine;
    clock.watch((step) => engine.clockWasSet(step));
    background.replays = replays;
    const { events: retentionMs = 0, audit: auditMs } = config.retention;
    const retention = createRetention({
      events: store.events,
      audit: store.audit,
      stats: store.stats,
      node: store.node,
      clock,
      logger,
      retentionMs,
      auditMs,
    });
    const expiry = createSubscriptionExpiry({
      evreg: service.as(LOCAL_OWNER),
      node: store.node,
      clock,
      logger,
    });
    engine.start();
    retention.start();
    expiry.start();
    replays.start();
    const endIdleChecks = onIdle(clock, threadCpuMs, compactHeap);

    const stop = async (): Promise<void> => {
      endIdleChecks();
      ending.abort(
        new EvregError(
          "unavailable",
          "The server is being stopped, so there is no backup and nothing was written. Run it again once the server has started.",
        ),
      );
      const deadlineMs = config.shutdownGraceMs;
      // Results of attempts cannot be stored then, and nothing would hold the process alive to wait for them.
      const engineDeadlineMs = hasStoreFailed ? 0 : deadlineMs;
      const drained = await Promise.allSettled([
        http.close(deadlineMs),
        replays.stop(),
        engine.stop(engineDeadlineMs),
        retention.stop(),
        expiry.stop(),
      ]);
      await store.close();
      for (const part of drained) if (part.status === "rejected") throw part.reason;
    };
    let stopping: Promise<void> | undefined;
    const { url, addresses, renewCertificate } = http;
    const evreg = service.as(LOCAL_OWNER);
    const running = { url, addresses, evreg, renewCertificate, stop: () => (stopping ??= stop()) };
    return tokenFile === undefined ? running : { ...running, tokenFile };
  } catch (error) {
    for (const step of undo.toReversed()) {
      await step().catch((failure: unknown) =>
        logger.error({ err: failure }, "Undoing a failed start failed as well."),
      );
    }
    throw error;
  }
}

async function loadServerParts() {
  // h3 builds on the global `Response`, and Node's own would load a second undici beside the one that sends: in 40 ms.
  const { default: undici } = await import("undici");
  undici.install();
  return Promise.all([
    import("../http/app.ts"),
    import("../http/server.ts"),
    import("../delivery/engine.ts"),
    import("../delivery/replay-runner.ts"),
    import("../service/retention.ts"),
    // For `metricsOf`: at the first scrape another build may have taken its place.
    import("../metrics/registry.ts"),
  ]);
}

/** A first start that finds its port taken leaves no data behind: later commands would use it without a word. */
async function checkFirstStart({ data, host, port }: Config): Promise<void> {
  const { dataFileOf } = await import("../store/libsql/files/data-folder.ts");
  if (existsSync(dataFileOf(data))) return;
  const { mustBeFree } = await import("../http/listen.ts");
  await mustBeFree(host, port);
}

export interface LocalOptions extends AppOptions {
  /** The command line's words, for others who find the folder in use. */
  readonly command: string;
  /** Whether a folder that holds no data yet is refused (`not_found`) and stays as it is. */
  readonly needsData?: boolean;
}

/**
 * The data folder opened in this process, with every right; `close` lets go of it. Nothing is delivered meanwhile: what is
 * due belongs to everybody who published it, and is sent by the settings of a server, never by those of a command's shell.
 * @throws EvregError `conflict` naming the holder, at once for a server and after a short wait for another command
 */
export async function openLocal(options: LocalOptions): Promise<Evreg> {
  const { service, store } = await whenFree(options.config.data, COMMAND_WAIT_MS, () => compose(options));
  const evreg = service.as(LOCAL_OWNER);
  let closing: Promise<void> | undefined;
  return { ...evreg, close: () => (closing ??= store.close()) };
}

const COMMAND_WAIT_MS = 800;
/** As long as a command waits for a server that is starting. */
const SERVER_WAIT_MS = 5_000;

/** Another command holds the folder for a moment only, so it is waited for; a server is not. */
async function whenFree<T>(folder: string, waitMs: number, open: () => Promise<T>): Promise<T> {
  const giveUpAtMs = performance.now() + waitMs;
  for (;;) {
    try {
      return await open();
    } catch (error) {
      const isHeld =
        error instanceof EvregError && error.code === "conflict" && error.details["folder"] !== undefined;
      if (!isHeld || isServed(folder) || performance.now() >= giveUpAtMs) throw error;
      await new Promise((resolve) => setTimeout(resolve, 40));
    }
  }
}

/** A command that is just beginning has not named itself yet, and a server that was killed still has. */
function isServed(folder: string): boolean {
  const owner = readOwner(folder);
  return owner?.command === "serve" && isOwnerAlive(owner);
}

/** Mints the first admin token if there is none, and answers the file that holds it, or one from before that holds. */
async function firstToken(
  service: Service,
  store: Store,
  { data, auth }: Config,
): Promise<string | undefined> {
  const isNew = await service.bootstrapToken((token) => storeFirstToken(data, token), auth.bootstrapToken);
  if (isNew) return tokenFileOf(data);
  const stored = readTokenFile(data);
  const holds = stored !== undefined && (await store.tokens.find(hashToken(stored))) !== undefined;
  return holds ? tokenFileOf(data) : undefined;
}

function storeFirstToken(folder: string, token: string): void {
  try {
    writeTokenFile(folder, token);
  } catch (error) {
    throw new EvregError(
      "unavailable",
      `The first admin token could not be written to the data folder ${folder}; make it writable and start again.`,
      {},
      { cause: error },
    );
  }
}

/**
 * What `serve --dev` makes of a configuration: no token needed, and `http:` and loopback handlers allowed.
 * @throws EvregError `usage` on a host that others could reach
 */
function devConfig(config: Config): Config {
  if (!isLoopbackHost(config.host)) {
    throw new EvregError(
      "usage",
      `--dev needs no token, so it only listens on this machine: ${config.host} is not a loopback address. Leave --host out, or leave --dev out.`,
    );
  }
  return Object.freeze({
    ...config,
    auth: Object.freeze({ ...config.auth, mode: "off" as const }),
    delivery: Object.freeze({
      ...config.delivery,
      allowHttp: true,
      allowNetworks: Object.freeze([...config.delivery.allowNetworks, ...LOOPBACK_NETWORKS]),
    }),
  });
}
