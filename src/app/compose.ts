import type { Config } from "../config/schema.ts";
import { encryptionKeys } from "../config/values.ts";
import type { Engine } from "../delivery/engine.ts";
import type { ReplayRunner } from "../delivery/replay-runner.ts";
import type { EvregError } from "../domain/error.ts";
import type { Finding, Health } from "../domain/operations.ts";
import { DeliveryCounts, LoopWatch, PublishCounts } from "../metrics/counters.ts";
import type { MetricSources } from "../metrics/registry.ts";
import { type Clock, type Random, systemClock, systemRandom, toIso } from "../runtime/clock.ts";
import { tokenFileOf } from "../runtime/find-server.ts";
import type { Logger } from "../runtime/logger.ts";
import type { Owner } from "../runtime/owner-file.ts";
import type { Retention } from "../service/retention.ts";
import type { Service } from "../service/service.ts";
import type { ServiceEventCounts } from "../store/queue.ts";
import type { Store } from "../store/store.ts";
import { folderFindings, program } from "./findings.ts";

/** What evreg runs in: the same for a server and for a command that holds the data folder itself. */
export interface Surroundings {
  readonly config: Config;
  readonly version: string;
  readonly logger: Logger;
  readonly clock?: Clock;
  readonly random?: Random;
}

/** What both are made of. */
export interface Parts {
  readonly owner: Owner;
  readonly store: Store;
  readonly service: Service;
  /** For whatever else refuses to publish. */
  readonly published: PublishCounts;
  /** Of this thread; for a server to start. */
  readonly loop: LoopWatch;
  /** Makes the engine once it is known which addresses are the service's own; the service wakes it from then on. */
  createEngine(ownAddresses: () => readonly string[]): Promise<Engine>;
  /** Makes what removes old events; `undefined` when they are kept for good. */
  createRetention(): Promise<Retention | undefined>;
  /** Makes what carries on replays; it wakes the engine, and the service wakes it from then on. */
  createReplayRunner(): Promise<ReplayRunner>;
}

/** Opens the store (the folder, its lock, the migrations) and puts the service in front of it. */
export async function buildParts(
  options: Surroundings & {
    readonly command: string;
    readonly acceptsLoss?: boolean;
    readonly needsData?: boolean;
    readonly onFatal?: (error: EvregError) => void;
    /** For the doctor, of what else there is. */
    readonly findings?: () => readonly Finding[];
  },
): Promise<Parts> {
  const { config, version, logger, clock = systemClock, random = systemRandom } = options;
  const owner: Owner = {
    pid: process.pid,
    command: options.command,
    instance: Buffer.from(random.bytes(16)).toString("hex"),
    started_at: toIso(clock.now()),
  };
  const { onFatal } = options;
  let engine: Engine | undefined;
  const published = new PublishCounts();
  const onServiceEvents = (counts: ServiceEventCounts): void => {
    published.told(counts);
    engine?.wake();
  };
  const onReplayed = (queued: number): void => {
    published.replayedDeliveries += queued;
    engine?.wake();
  };
  const delivered = new DeliveryCounts();
  const onFailed = (failed: number): void => delivered.ended({ delivered: 0, failed, filtered: 0 });
  const encryption = encryptionKeys(config.encryption);
  const serves = options.command === "serve";
  const opening = {
    folder: config.data,
    owner,
    logger,
    clock,
    encryption,
    onServiceEvents,
    onFailed,
    keepsForm: !serves,
    needsData: options.needsData ?? false,
    acceptsLoss: options.acceptsLoss ?? false,
  };
  const [store, { createService }, { ValidationThread }] = await Promise.all([
    import("../store/libsql/open.ts").then(({ openLibsqlStore }) =>
      openLibsqlStore(onFatal === undefined ? opening : { ...opening, onFatal }),
    ),
    import("../service/service.ts"),
    import("../service/validation-thread.ts"),
  ]);
  const longChecks = new ValidationThread(clock);
  const loop = new LoopWatch();
  let replays: ReplayRunner | undefined;
  const engineState = (): Health["engine"] => engine?.state() ?? "stopped";
  const metrics = metricsOf({ published, delivered, store, engineState, loop, clock, version });
  const service = createService({
    store,
    clock,
    random,
    logger,
    version,
    instance: owner.instance,
    config: { limits: config.limits, delivery: config.delivery },
    wake: (changed) => engine?.wake(changed),
    wakeReplays: () => replays?.wake(),
    engineState,
    longChecks,
    counts: published,
    metrics,
    surroundings: {
      findings: () => [program(version), ...(options.findings?.() ?? []), ...folderFindings(config.data)],
      clockShiftMs: () => Date.now() - (performance.timeOrigin + performance.now()),
      serves,
      encrypts: encryption !== undefined,
      hasTokenFile: () => tokenFileOf(config.data) !== undefined,
      isOpen: config.auth.mode === "off",
    },
  });
  return {
    owner,
    store,
    service,
    published,
    loop,
    async createEngine(ownAddresses) {
      const { createEngine } = await import("../delivery/engine.ts");
      engine = createEngine({
        store: store.queue,
        clock,
        random,
        logger,
        config: config.delivery,
        ownAddresses,
        version,
        longChecks,
        counts: delivered,
      });
      return engine;
    },
    async createRetention() {
      const keepMs = config.retention.events;
      if (keepMs === undefined) return undefined;
      const { Retention } = await import("../service/retention.ts");
      return new Retention({ events: store.events, clock, logger, keepMs });
    },
    async createReplayRunner() {
      const { ReplayRunner } = await import("../delivery/replay-runner.ts");
      replays = new ReplayRunner({ store: store.replays, clock, logger, wake: onReplayed });
      return replays;
    },
  };
}

/** What makes text of them is loaded when somebody asks: not every server is scraped, and hardly a command needs it. */
function metricsOf(sources: MetricSources): () => Promise<string> {
  let loading: Promise<{ metrics(): Promise<string> }> | undefined;
  return async () => {
    loading ??= import("../metrics/registry.ts").then(({ createMetrics }) => createMetrics(sources));
    return (await loading).metrics();
  };
}
