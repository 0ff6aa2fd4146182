import { type SharedClock, systemClock } from "../../runtime/clock.ts";
import { silentLogger } from "../../runtime/logger.ts";
import { EngineFailure } from "../sql/sql.ts";
import type { Store } from "../store.ts";
import { singleWrite } from "../thread/protocol.ts";
import { createStore, type StoreOptions, threadCalls } from "../thread/store.ts";
import { StoreThreads } from "../thread/store-threads.ts";
import { WriteQueue } from "../thread/write-queue.ts";
import { commandFailure } from "./failure.ts";
import type { NodeSettings, Sharing } from "./nodes.ts";
import { Membership } from "./membership.ts";
import type { DatabaseWriterSetup, OwnOperations } from "./worker.ts";

/** Each opening has an owner with an instance of its own. */
export interface PostgresOptions extends StoreOptions {
  /** The address of the database, see `DatabaseSetup`. */
  readonly url: string;
  /** The version of the program, for people. */
  readonly version?: string;
  /** What all nodes should have alike. */
  readonly settings?: NodeSettings;
  /** Whether it delivers: then it takes its share of the subscriptions. By default it does. */
  readonly serves?: boolean;
  /** Is set by the clock of the database, and is what `clock` shows. Without it the times are those of `clock`. */
  readonly shared?: SharedClock | undefined;
}

const STATEMENT_TIMEOUT_MS = 30_000;

/**
 * Opens a database of PostgreSQL, as one of several who may have it open: makes evreg's tables in the schema `evreg` where there are
 * none, and takes a share of the subscriptions.
 * @throws EvregError `usage` where the database refuses the user, or has tables of another
 * evreg; `not_found` without the data it needs; `unavailable` where it cannot be reached
 */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const {
    url,
    owner,
    logger = silentLogger,
    clock = systemClock,
    encryption,
    shared,
    needsData = false,
    serves = true,
    version = "",
    settings = {},
    onChange = () => undefined,
  } = options;
  const own = { script: "postgres-thread", hasReader: true, clock, logger } as const;
  const threads = new StoreThreads({ ...options, ...own });
  const reached = { url, statementTimeoutMs: STATEMENT_TIMEOUT_MS, key: encryption?.key };
  const setup: DatabaseWriterSetup = {
    ...reached,
    needsData,
    node: { ...owner, version, settings, serves },
    encryption,
    nowMs: shared === undefined ? clock.now() : undefined,
  };
  const report = await threads.open(setup).catch((error: unknown) => {
    throw openFailure(error);
  });
  const queue = new WriteQueue(threads, onChange, (change) => membership.seenByAll(change));
  const { node, others, database } = threadCalls<OwnOperations>({ threads, queue, report });
  const { instance: id } = owner;
  const share = async (): Promise<Sharing> => {
    const sharing = await node.share(id, clock.now());
    const { dead, released: deliveries } = sharing;
    for (const { host, pid, seen_at, shards } of dead.filter((one) => one.shards > 0)) {
      logger.warn(
        { host, process: pid, seenAt: seen_at, shards },
        `The node at ${host} (process ${pid}) has given no sign of life since ${seen_at}: its ${shards} shards go to the others.`,
      );
    }
    if (deliveries > 0)
      logger.info({ deliveries }, "Deliveries that were under way at a node that is gone are due again.");
    return sharing;
  };
  const membership = new Membership({
    setup: reached,
    id,
    serves,
    share,
    onChange: (received = []) => onChange({ others: true, received }),
    broadcast: (changes) => others.broadcast(id, changes),
    receive: (isWanted) => others.receive(id, isWanted),
    onTime: (...reading) => shared?.read(...reading),
  });
  const close = async (): Promise<void> => {
    await queue.close();
    await membership.end();
    // Without this, others would wait until the lease has ended.
    await threads.write(singleWrite("node.leave", id)).catch(() => undefined);
    await threads.close();
  };
  try {
    await membership.begin();
  } catch (error) {
    await close();
    throw openFailure(error);
  }
  const store = createStore({ threads, queue, report, node: membership, close });
  return { ...store, database };
}

function openFailure(error: unknown): unknown {
  if (!(error instanceof EngineFailure)) return error;
  const advice = error.kind === "refused" ? "" : " See whether it runs, and whether its address is right.";
  return commandFailure(error, `The database cannot be opened: ${error.message}.${advice}`);
}
