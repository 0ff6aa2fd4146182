import { rmSync } from "node:fs";
import { folderFindings } from "../../src/app/doctor-findings.ts";
import { EvregError } from "../../src/domain/error.ts";
import { Filters } from "../../src/delivery/filters.ts";
import { WaitingConsumers } from "../../src/delivery/waiting-consumers.ts";
import { PullAttempts } from "../../src/delivery/pull-attempts.ts";
import { StoreCalls } from "../../src/delivery/store-calls.ts";
import type { Health } from "../../src/domain/operations.ts";
import { LOCAL_OWNER, type Scope } from "../../src/domain/token.ts";
import type { HandlerTest } from "../../src/domain/webhook.ts";
import type { Evreg } from "../../src/evreg.ts";
import { COMMIT_SECONDS, Histogram, EngineCounts, PublishCounts } from "../../src/metrics/counters.ts";
import { createMetrics } from "../../src/metrics/registry.ts";
import { systemClock, systemRandom } from "../../src/runtime/clock.ts";
import { type Logger, silentLogger } from "../../src/runtime/logger.ts";
import { eventLoop } from "../../src/runtime/yielding.ts";
import { createService, type Service } from "../../src/service/service.ts";
import { ValidationThread } from "../../src/service/validation-thread.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import type { Store } from "../../src/store/store.ts";
import { folderOfEmptyStore } from "./empty-store.ts";
import { ManualClock } from "./manual-clock.ts";
import { inNewFolder } from "./thread-pool.ts";

/** Most bytes of a payload in the services made here: small, so that tests can go past it. */
export const PAYLOAD_BYTES = 16 * 1024;

export interface LocalService {
  readonly service: Service;
  /** The port with every right. */
  readonly evreg: Evreg;
  /** The port of somebody who holds these scopes. */
  as(scopes: readonly Scope[]): Promise<Evreg>;
  readonly store: Store;
  readonly clock: ManualClock;
  readonly folder: string;
  /** How often the engine would have been woken. */
  wakes(): number;
  close(): Promise<void>;
}

export interface LocalServiceOptions {
  readonly engineState?: () => Health["engine"];
  readonly logger?: Logger;
  /** Puts something between the service and its store. */
  readonly around?: (store: Store) => Store;
  /** Opens an empty store other than one in the folder. */
  readonly open?: (folder: string) => Promise<Store>;
  /** Whether the store reads in a thread of its own, as that of a server does; that of a command has one thread for all. */
  readonly serves?: boolean;
  /** What a test of a handler comes to, as if an engine ran. */
  readonly tested?: () => HandlerTest | undefined;
}

/** One for all services: most have a schema or two for it, and its start takes longer than those. It ends 10 s after the last. */
const offThread = new ValidationThread(systemClock);

/** A service on a real store in a folder of its own, removed at the end. */
export async function openLocalService(options: LocalServiceOptions = {}): Promise<LocalService> {
  const { engineState = () => "running", logger = silentLogger, serves = false } = options;
  const { around = (store) => store } = options;
  const folder = await folderOfEmptyStore("evreg-service-");
  const clock = new ManualClock();
  const command = serves ? "serve" : "test";
  const owner = { pid: process.pid, command, instance: "test", started_at: new Date().toISOString() };
  const commits = new Histogram(COMMIT_SECONDS);
  const inFolder = (): Promise<Store> => openLibsqlStore({ folder, owner, logger, commits });
  const opened = await inNewFolder(() => options.open?.(folder) ?? inFolder());
  const store = around(opened);
  let wakes = 0;
  const countWake = (): void => {
    wakes += 1;
    desk.wake();
  };
  const counts = new EngineCounts();
  const random = systemRandom;
  const calls = new StoreCalls({
    store: store.queue,
    clock,
    logger,
    counts,
    config: { disableAfter: 0 },
    onResult: (result) => service.feed.ended(result),
  });
  const filters = new Filters({ logger, yielder: eventLoop, longChecks: offThread });
  const version = "0.0.0-test";
  const parts = { clock, store: store.queue, calls, counts, random, filters, version };
  const releaseExpired = async (): Promise<void> => {
    if ((await calls.releaseExpired()) > 0) desk.wake();
  };
  const desk = new WaitingConsumers({
    ...parts,
    attempts: new PullAttempts(parts),
    releaseExpired,
  });
  const published = new PublishCounts();
  let metrics: ReturnType<typeof createMetrics> | undefined;
  const sources = {
    published,
    delivered: counts,
    commits,
    streamsOpen: (): number => service.feed.streamsOpen,
    store,
    engineState,
    clock,
    version,
  };
  const service: Service = createService({
    store,
    clock,
    random,
    logger,
    version,
    instance: "test",
    server: "test",
    limits: { payloadBytes: PAYLOAD_BYTES },
    delivery: { allowHttp: false, allowNetworks: [], disableAfter: 432_000_000 },
    background: {
      engine: {
        state: engineState,
        wake: countWake,
        claimOf: () => undefined,
        recorded: () => undefined,
        async test() {
          const tested = options.tested?.();
          if (tested === undefined) throw new EvregError("unavailable", "No engine runs here.");
          return tested;
        },
        pulls: desk,
      },
    },
    offThread,
    schemaProducts: offThread,
    counts: published,
    // Not made before it is asked for: it watches the event loop from then on.
    metrics: () => (metrics ??= createMetrics(sources)).metrics(),
    environment: () => ({
      findings: folderFindings(folder),
      clockShiftMs: 0,
      serves: true,
      encrypts: false,
      isOpen: false,
    }),
  });
  return {
    service,
    evreg: service.as(LOCAL_OWNER),
    as: (scopes) => Promise.resolve(service.as({ name: scopes.join(" "), scopes })),
    store,
    clock,
    folder,
    wakes: () => wakes,
    async close() {
      await desk.close();
      await opened.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
