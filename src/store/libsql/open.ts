import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { EvregError } from "../../domain/error.ts";
import { systemClock, toIso } from "../../runtime/clock.ts";
import { sizeOf } from "../../runtime/files.ts";
import { findServer } from "../../runtime/find-server.ts";
import { type Logger, silentLogger } from "../../runtime/logger.ts";
import { removeOwner, writeOwner } from "../../runtime/owner-file.ts";
import type { Store } from "../store.ts";
import { Backups } from "./files/backup.ts";
import {
  admittedVersion,
  createFile,
  dataFileOf,
  fileExists,
  inUseError,
  mustBeWritable,
  prepareFolder,
  removeCopies,
  restoreAdvice,
} from "./files/data-folder.ts";
import { KEPT_AS, mustHaveUpgradeRoom, type UpgradeRoom, upgradeRoom } from "./files/older-forms.ts";
import { acceptLoss } from "./files/restore.ts";
import { FORM } from "./files/schema.ts";
import { createStore, SOLE_NODE, type StoreOptions } from "../thread/store.ts";
import type { ReaderSetup } from "./connection.ts";
import type { WriterSetup } from "./worker.ts";
import { EngineFailure } from "../sql/sql.ts";
import { StoreThreads } from "../thread/store-threads.ts";
import { WriteQueue } from "../thread/write-queue.ts";

export interface OpenOptions extends StoreOptions {
  /** The data folder, which is created if it is missing. */
  readonly folder: string;
  /** Whether to go on without what a damaged log has lost, which is refused otherwise. */
  readonly acceptsLoss?: boolean;
}

/**
 * Opens the data folder for this process alone: takes its lock, brings its file up to date (and keeps the old one), and makes
 * deliveries that a dead process had under way due again.
 * @throws EvregError `conflict` naming the owner when the folder is in use; `usage` when it is no folder, or holds a file of
 * another form or encrypted with another key; `invalid` for another program's file; `unavailable` when it cannot be written to, its
 * data are gone, or its log is damaged; `not_found` without the data it needs
 */
export async function openLibsqlStore(options: OpenOptions): Promise<Store> {
  const { folder, owner, logger = silentLogger, clock = systemClock } = options;
  prepareFolder(folder);
  // A server's lock is on the data file that it opened, and does not help once that file was moved. So the server that the
  // owner file names is asked. Where none answers, or that file cannot be trusted, the lock decides.
  if ((await findServer(folder).catch(() => undefined)) !== undefined) throw inUseError(folder);
  if (options.acceptsLoss === true) {
    const accepted = await acceptLoss(dataFileOf(folder), clock.now());
    if (accepted !== undefined) {
      logger.warn(
        accepted,
        `The data go on without the ${accepted.transactions} transactions behind the damage in the log. Both files are kept as they were, as ${accepted.kept} and ${accepted.kept}-wal, and no number is given twice.`,
      );
    }
  }
  const path = checkedFile(options, logger);
  const serves = owner.command === "serve";
  // With one thread a command starts sooner, and it has nothing to read while it writes.
  const own = { script: "store-thread", hasReader: serves, clock, logger } as const;
  const threads = new StoreThreads({ ...options, ...own });
  const setup: WriterSetup = { path, encryption: options.encryption, nowMs: clock.now() };
  const report = await threads.open<ReaderSetup>(setup).catch((error: unknown) => {
    throw openFailure(folder, error);
  });
  const queue = new WriteQueue(threads, options.onChange ?? (() => undefined));
  const backups = new Backups(report.reader, threads);
  const close = async (): Promise<void> => {
    await Promise.all([queue.close(), backups.end()]);
    // The owner file is removed before the lock is released, as the next owner writes its own.
    removeOwner(folder, owner.instance);
    await threads.close();
  };
  writeOwner(folder, owner, logger);
  if (serves) removeCopies(path);
  const store = createStore({ threads, queue, report, node: SOLE_NODE, close });
  return { ...store, backup: (signal) => backups.make(signal) };
}

/**
 * Looks at the data file before the engine opens it, which would write to it. Creates an empty one where there is none and never
 * was one. To be called only while this process has no connection to it.
 * @returns its path
 */
function checkedFile({ folder, owner, needsData = false }: OpenOptions, logger: Logger): string {
  const { file: path, current: form, room } = inspectMigrations(folder);
  if (room !== undefined) {
    if (owner.command !== "serve" && owner.command !== "migrate") {
      throw new EvregError(
        "usage",
        `The data file ${path} has form ${form}, and this evreg needs form ${FORM}. Only the start of a server and ` +
          "`evreg migrate` bring it there, and keep a copy: an older evreg cannot open it afterwards. Run one of them, or use the " +
          "evreg that made it. The file was not changed.",
        { file: path, version: form, latest: FORM },
      );
    }
    mustHaveUpgradeRoom(path, form, room);
  }
  if (needsData && form === 0) {
    const message = `The data folder ${folder} holds no data yet, and was left as it is. Name another with --data, or a server with --url; to begin here, start a server with \`evreg serve\` or create the first action with \`evreg actions create\`.`;
    throw new EvregError("not_found", message, { folder });
  }
  // A file that is gone by now is being replaced, and none must be created in its place.
  if (form === 0) createFile(path);
  mustBeWritable(path);
  if (room !== undefined) {
    const upgrade = { file: path, form, bytes: sizeOf(path) + sizeOf(`${path}-wal`) };
    logger.info(upgrade, `The data file is being brought to form ${FORM}. A GB takes about a minute.`);
  }
  return path;
}

/** A caller may try again after so long, as room may have been made by then. */
const FULL_RETRY_MS = 1_000;

function openFailure(folder: string, error: unknown): unknown {
  if (!(error instanceof EngineFailure)) return error;
  if (error.kind === "in_use") return inUseError(folder);
  const isFull = error.kind === "full";
  const next = isFull ? " Make room, and start it again." : "";
  const advice = error.isFatal ? ` If it is damaged, ${restoreAdvice(folder)}.` : next;
  const message = `The data folder ${folder} cannot be opened: ${error.message}.${advice}`;
  const failure = new EvregError("unavailable", message, { folder }, { cause: error });
  // A command ends here as it does where a server answers that its disk is full.
  if (isFull) failure.retryAfterMs = FULL_RETRY_MS;
  return failure;
}

export interface MigrationStatus {
  readonly file: string;
  readonly exists: boolean;
  /** The form of the data file; 0 when it is empty or missing. */
  readonly current: number;
  /** The form this evreg brings it to. */
  readonly latest: number;
  /** The room that the upgrade needs at most; absent where there is nothing to do. */
  readonly room?: UpgradeRoom;
  /** Where the file is as it was before. */
  readonly copy?: string;
}

/**
 * Answers what a start would do to the folder's file. Reads a few bytes and takes no lock, so it also works while a server has
 * the folder. To be called only while this process has no connection to the file.
 * @throws EvregError as `openLibsqlStore` for a file that is not evreg's or is newer, or is missing beside what is left of it
 */
export function inspectMigrations(folder: string): MigrationStatus {
  const file = dataFileOf(folder);
  const exists = fileExists(file);
  const current = existsSync(folder) ? admittedVersion(folder) : 0;
  const room = upgradeRoom(file, current);
  return { file, exists, current, latest: FORM, ...(room === undefined ? {} : { room }) };
}

/**
 * Brings the folder's file up to date, as a start does.
 * @param options `dryRun`: changes nothing; the others as for `openLibsqlStore`
 * @throws EvregError as `openLibsqlStore`
 */
export async function migrate(
  folder: string,
  {
    dryRun = false,
    ...options
  }: Partial<Pick<OpenOptions, "encryption" | "acceptsLoss" | "logger">> & { readonly dryRun?: boolean } = {},
): Promise<MigrationStatus> {
  const before = inspectMigrations(folder);
  if (dryRun) {
    if (before.room !== undefined) mustHaveUpgradeRoom(before.file, before.current, before.room);
    return before;
  }
  const started_at = toIso(systemClock.now());
  const owner = { pid: process.pid, command: "migrate", instance: randomUUID(), started_at };
  await (await openLibsqlStore({ ...options, folder, owner })).close();
  const isUpgraded = before.room !== undefined;
  return { ...inspectMigrations(folder), ...(isUpgraded ? { copy: `${before.file}.${KEPT_AS}` } : {}) };
}
