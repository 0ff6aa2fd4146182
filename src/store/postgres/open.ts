import { mkdirSync } from "node:fs";
import { EvregError } from "../../domain/error.ts";
import { type Clock, systemClock } from "../../runtime/clock.ts";
import { type Logger, silentLogger } from "../../runtime/logger.ts";
import { type Owner, removeOwner, writeOwner } from "../../runtime/owner-file.ts";
import type { EncryptionKeys } from "../secret-cipher.ts";
import { EngineFailure } from "../sql/sql.ts";
import type { Store, StoreChange } from "../store.ts";
import { singleWrite } from "../thread/protocol.ts";
import { createStore } from "../thread/store.ts";
import { StoreThreads, type StoreThreadsOptions } from "../thread/store-threads.ts";
import { WriteQueue } from "../thread/write-queue.ts";
import type { WriterSetup } from "./setup.ts";

export interface PostgresOptions {
  /** The address of the database, with its user and password. */
  readonly url: string;
  /** The data folder, which is created if it is missing. It holds no data, but says where the server of this machine is. */
  readonly folder: string;
  /** Who opens the database, for others who find it in use. */
  readonly owner: Owner;
  readonly logger?: Logger;
  readonly clock?: Clock;
  readonly encryption?: EncryptionKeys | undefined;
  readonly commits?: StoreThreadsOptions["commits"];
  readonly onChange?: (change: StoreChange) => void;
  readonly onFatal?: (error: EvregError) => void;
}

/** The longest that a statement may take. */
const STATEMENT_TIMEOUT_MS = 30_000;
/** How often it is said that this server is there, and for how long that holds. */
const BEAT_MS = 3_000;

/**
 * Opens a database of PostgreSQL: makes evreg's tables in the schema `evreg` where there are none, and keeps other servers out for
 * as long as this one has it.
 * @throws EvregError `conflict` while another server has it; `usage` where the database refuses the user, or has tables of another
 * evreg; `unavailable` where it cannot be reached
 */
export async function openPostgresStore(options: PostgresOptions): Promise<Store> {
  const {
    url,
    folder,
    owner,
    logger = silentLogger,
    clock = systemClock,
    encryption,
    commits,
    onFatal,
  } = options;
  const onDamaged = (event: number): void =>
    logger.error(
      { event },
      "The payload of an event is damaged in the database: it is not shown and not sent.",
    );
  const threads = new StoreThreads({
    script: "postgres-thread",
    hasReader: true,
    clock,
    logger,
    onDamaged,
    commits,
    onFatal,
  });
  const setup: WriterSetup = {
    url,
    statementTimeoutMs: STATEMENT_TIMEOUT_MS,
    owner,
    encryption,
    nowMs: clock.now(),
  };
  const report = await threads.open(setup).catch((error: unknown) => {
    throw openFailure(error);
  });
  for (const { level, details, message } of report.notices) logger[level](details, message);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  writeOwner(folder, owner, logger);
  const queue = new WriteQueue(threads, options.onChange ?? (() => undefined));
  let cancelBeat: (() => void) | undefined;
  const beat = (): void => {
    cancelBeat = clock.setTimer(() => {
      // While the database is away, the trials of writes show when it is back.
      queue
        .append({ operation: "turn.keep", rows: 1, call: () => [] })
        .catch(() => undefined)
        .finally(() => cancelBeat !== undefined && beat());
    }, BEAT_MS);
  };
  beat();
  const { operations, dataId } = report;
  const close = async (): Promise<void> => {
    cancelBeat?.();
    cancelBeat = undefined;
    await queue.close();
    // Without this, the next server would wait until the turn has run out.
    await threads.write(singleWrite("turn.end")).catch(() => undefined);
    removeOwner(folder, owner.instance);
    await threads.close();
  };
  return createStore({ threads, queue, operations, dataId, key: encryption?.key, close });
}

function openFailure(error: unknown): unknown {
  if (!(error instanceof EngineFailure)) return error;
  const code = error.kind === "refused" ? "usage" : "unavailable";
  return new EvregError(code, `The database cannot be opened: ${error.message}.`, {}, { cause: error });
}
