import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Config } from "../config/keys.ts";
import { encryptionKeys, nodeSettings } from "../config/values.ts";
import { EvregError } from "../domain/error.ts";
import type { Finding, Health } from "../domain/operations.ts";
import { COMMIT_SECONDS, EngineCounts, Histogram, PublishCounts } from "../metrics/counters.ts";
import type { MetricSources } from "../metrics/registry.ts";
import {
  type Clock,
  type Random,
  SharedClock,
  systemClock,
  systemRandom,
  toIso,
  WatchedClock,
} from "../runtime/clock.ts";
import { DATA_FILE } from "../runtime/data-files.ts";
import { findServer } from "../runtime/find-server.ts";
import type { Logger } from "../runtime/logger.ts";
import { type Owner, writeOwner } from "../runtime/owner-file.ts";
import type { Background } from "../service/context.ts";
import type { Service } from "../service/service.ts";
import type { Store, StoreChange } from "../store/store.ts";
import { dataFindings, programFinding, transportFindings } from "./doctor-findings.ts";
import { processGroup } from "./processes.ts";

/** What a server and a command that holds the data folder itself are both built from. */
export interface AppOptions {
  readonly config: Config;
  readonly version: string;
  readonly logger: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
}

interface ComposeOptions extends AppOptions {
  readonly command: string;
  readonly acceptsLoss?: boolean;
  readonly needsData?: boolean;
  readonly onFatal?: (error: EvregError) => void;
  /** Further findings for the doctor. */
  readonly findings?: () => readonly Finding[];
}

/** Opens the store (the folder, its lock, the upgrade of its file; or the database) and puts the service in front of it. */
export async function compose(options: ComposeOptions) {
  const { config, version, logger, random = systemRandom } = options;
  const { url: database } = config.database;
  const shared =
    database === undefined || options.clock !== undefined ? undefined : new SharedClock(systemClock);
  const clock = new WatchedClock(shared ?? options.clock ?? systemClock);
  const self: Owner = {
    pid: process.pid,
    command: options.command,
    instance: Buffer.from(random.bytes(16)).toString("hex"),
    started_at: toIso(clock.now()),
  };
  // To others, several processes behind one address are one server.
  const group = processGroup();
  const named = database === undefined ? self : { ...self, database: databaseName(database) };
  const owner = group === undefined ? named : { ...named, ...group };
  const { onFatal } = options;
  const background: Background = {};
  const published = new PublishCounts();
  const delivered = new EngineCounts();
  const commits = new Histogram(COMMIT_SECONDS);
  const streamsOpen = (): number => service?.feed.streamsOpen ?? 0;
  let service: Service | undefined;
  const encryption = encryptionKeys(config.encryption);
  const serves = options.command === "serve";
  const opening = {
    folder: config.data,
    owner,
    logger,
    clock,
    encryption,
    commits,
    onChange: ({ serviceEvents, failed = 0, others = false, received = [] }: StoreChange): void => {
      delivered.finished.failed += failed;
      if (others) {
        service?.tokens.refresh();
        service?.feed.received(received);
        background.replays?.wake();
      }
      if (serviceEvents !== undefined) published.countServiceEvents(serviceEvents);
      if (serviceEvents === undefined && !others) return;
      background.engine?.wake();
      service?.feed.recorded();
    },
    needsData: options.needsData ?? false,
    acceptsLoss: options.acceptsLoss ?? false,
  };
  const openStore = async (): Promise<Store> => {
    const all = onFatal === undefined ? opening : { ...opening, onFatal };
    if (database === undefined) return await (await import("../store/libsql/open.ts")).openLibsqlStore(all);
    if (serves && group === undefined) await mustBeFree(config.data);
    if (existsSync(join(config.data, DATA_FILE))) {
      logger.warn(
        { data: config.data },
        `The data folder ${config.data} has data of its own, which are not used here: the data are in the database ${databaseName(database)}. \`evreg move --from\` brings them there.`,
      );
    }
    const { openPostgresStore } = await import("../store/postgres/open.ts");
    const opened = await openPostgresStore({
      ...all,
      owner: self,
      url: database,
      version,
      settings: { version, ...nodeSettings(config) },
      serves,
      shared,
    });
    clock.settle();
    if (!serves) return opened;
    // The folder has no data, but says where the server of this machine is and, once that has ended, where its data are.
    mkdirSync(config.data, { recursive: true, mode: 0o700 });
    writeOwner(config.data, owner, logger);
    return opened;
  };
  const [store, [{ createService }, { ValidationThread }]] = await Promise.all([
    openStore(),
    storeBegins().then(() =>
      Promise.all([import("../service/service.ts"), import("../service/validation-thread.ts")]),
    ),
  ]);
  const offThread = new ValidationThread(clock);
  const engineState = (): Health["engine"] => background.engine?.state() ?? "stopped";
  service = createService({
    store,
    clock,
    random,
    logger,
    version,
    instance: self.instance,
    server: owner.instance,
    limits: config.limits,
    delivery: config.delivery,
    background,
    offThread,
    // Apart, so that no payload waits for a comparison.
    schemaProducts: new ValidationThread(clock),
    counts: published,
    metrics: metricsOf({ published, delivered, commits, streamsOpen, store, engineState, clock, version }),
    environment: () => ({
      findings: [
        programFinding(version),
        ...transportFindings(config),
        ...(options.findings?.() ?? []),
        ...(serves || database === undefined ? dataFindings(config) : []),
      ],
      clockShiftMs: Date.now() - (performance.timeOrigin + performance.now()),
      serves,
      encrypts: encryption !== undefined,
      isOpen: config.auth.mode === "off",
    }),
  });
  return { owner, store, service, background, published, delivered, offThread, clock, random };
}

/** Host and name of a database, for people: no password. */
export function databaseName(url: string): string {
  const { host, pathname } = new URL(url);
  return `${host}${pathname}`;
}

/** @throws EvregError `conflict` where another server with a database has this folder: it would take its address for its own */
async function mustBeFree(folder: string): Promise<void> {
  const other = await findServer(folder).catch(() => undefined);
  if (other === undefined) return;
  throw new EvregError(
    "conflict",
    `The data folder ${folder} is that of the server at ${other.url}. Name another folder for this one with --data; it holds no data.`,
    { url: other.url },
  );
}

/**
 * By the next turn, a store that is being opened has started its thread. What is loaded then is loaded while the
 * thread opens the file; earlier, the thread would have to wait for it.
 */
export function storeBegins(): Promise<void> {
  return nextTurn();
}

/** What makes text of them is loaded by servers at their start; commands do not need it. */
function metricsOf(sources: MetricSources): () => Promise<string> {
  let loading: Promise<{ metrics(): Promise<string> }> | undefined;
  return async () => {
    loading ??= import("../metrics/registry.ts").then(({ createMetrics }) => createMetrics(sources));
    return (await loading).metrics();
  };
}
