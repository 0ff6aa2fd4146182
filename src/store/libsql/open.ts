import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { EvregError } from "../../domain/error.ts";
import { type Clock, systemClock, toIso } from "../../runtime/clock.ts";
import { sizeOf } from "../../runtime/files.ts";
import { findServer } from "../../runtime/find-server.ts";
import { type Logger, silentLogger } from "../../runtime/logger.ts";
import { type Owner, removeOwner, writeOwner } from "../../runtime/owner-file.ts";
import type { EncryptionKeys } from "../secret-cipher.ts";
import type { StoreChange } from "../store.ts";
import { Backups } from "./files/backup.ts";
import {
  admittedVersion,
  dataFileOf,
  fileBehindLink,
  fileExists,
  holdFolder,
  inUse,
  prepareFile,
  prepareFolder,
  removeCopies,
  restoreAdvice,
  unfinishedCopy,
} from "./files/data-folder.ts";
import { KEPT_AS, mustHaveUpgradeRoom, type UpgradeRoom, upgradeRoom } from "./files/older-forms.ts";
import { acceptLoss } from "./files/restore.ts";
import { FORM, FORM_NAME } from "./files/schema.ts";
import { createLibsqlStore, DamagedEvents, type FileStore } from "./store.ts";
import type { FileId } from "./thread/file-guard.ts";
import type { OpenReport } from "./thread/protocol.ts";
import { EngineFailure } from "./thread/sql.ts";
import { StoreThreads } from "./thread/store-threads.ts";
import { type CommitObserver, WorkerSupervisor } from "./thread/supervisor.ts";
import { WriteQueue } from "./thread/write-queue.ts";

export interface OpenOptions {
  /** The data folder, which is created if it is missing. */
  readonly folder: string;
  /** Who opens the folder. This is written into it, for others who find it in use. */
  readonly owner: Owner;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** The keys of secrets. Without them secrets stay as they are, and an encrypted file cannot be opened. */
  readonly encryption?: EncryptionKeys | undefined;
  /** Whether to go on without what a damaged log has lost, which is refused otherwise. */
  readonly acceptsLoss?: boolean;
  /** Whether to refuse a file of an older form, which an older evreg could not open once it is brought up to date. */
  readonly refusesOlderForm?: boolean;
  /** Whether to refuse a folder that holds no data yet. */
  readonly needsData?: boolean;
  readonly commits?: CommitObserver;
  /** Called after a commit that also did something that was not requested. */
  readonly onChange?: (change: StoreChange) => void;
  /** Called at most once, when the store can never commit again and must be closed. */
  readonly onFatal?: (error: EvregError) => void;
}

/**
 * Opens the data folder for this process alone: takes its lock, brings its file up to date (and keeps the old one), and makes
 * deliveries that a dead process had under way due again.
 * @throws EvregError `conflict` naming the owner when the folder is in use; `usage` when it is no folder, or holds a
 * file of a newer evreg or one encrypted with another key; `invalid` for another program's file; `unavailable` when it cannot be written to, or its
 * log is damaged
 */
export async function openLibsqlStore(options: OpenOptions): Promise<FileStore> {
  const { folder, owner, logger, clock = systemClock } = options;
  prepareFolder(folder);
  const releaseFolder = holdFolder(folder);
  try {
    // A server's lock is on the data file that it opened, and does not help once that file was moved. So the server that the
    // owner file names is asked. Where none answers, or that file cannot be trusted, the lock decides.
    if ((await findServer(folder).catch(() => undefined)) !== undefined) throw inUse(folder);
    if (options.acceptsLoss === true) {
      const accepted = await acceptLoss(dataFileOf(folder), clock.now());
      if (accepted !== undefined) {
        logger.warn(
          accepted,
          `The data go on without the ${accepted.transactions} transactions behind the damage in the log. Both files are kept as they were, as ${accepted.kept} and ${accepted.kept}-wal, and no number is given twice.`,
        );
      }
    }
    const damaged = new DamagedEvents(logger);
    const { supervisor, report } = await openFile(options, clock, damaged);
    const queue = new WriteQueue(supervisor, options.onChange ?? (() => undefined));
    const backups = new Backups(dataFileOf(folder), report.file, supervisor);
    const close = async (): Promise<void> => {
      await Promise.all([queue.close(), backups.end()]);
      // The owner file is removed before the lock is released, as the next owner writes its own.
      removeOwner(folder, owner.instance);
      await supervisor.close();
      await backups.close();
      releaseFolder();
    };
    writeOwner(folder, owner, logger);
    for (const { level, details, message } of report.notices) logger[level](details, message);
    if (owner.command === "serve") removeCopies(unfinishedCopy(fileBehindLink(dataFileOf(folder)), ""));
    return createLibsqlStore({
      supervisor,
      queue,
      operations: report.operations,
      damaged,
      backups,
      dataId: report.dataId,
      key: options.encryption?.key,
      close,
    });
  } catch (error) {
    releaseFolder();
    throw error;
  }
}

async function openFile(
  { folder, logger, onFatal, encryption, refusesOlderForm = false, needsData = false, commits }: OpenOptions,
  clock: Clock,
  damaged: DamagedEvents,
): Promise<{ supervisor: WorkerSupervisor; report: OpenReport }> {
  // The file is looked at before the engine opens it, which would write to it.
  const { path, form } = prepareFile(folder, { needsData, refusesOlderForm });
  if (form !== 0 && form !== FORM) {
    const upgrade = { file: path, form, bytes: sizeOf(path) + sizeOf(`${path}-wal`) };
    logger.info(upgrade, `The data file is being brought to form ${FORM}. A GB takes about a minute.`);
  }
  let supervisor: WorkerSupervisor | undefined;
  const start = (expected?: FileId): Promise<StoreThreads> =>
    StoreThreads.start(
      { path, expected, encryption, nowMs: clock.now() },
      { crashed: (reason) => supervisor?.stop(reason), damaged: (event) => damaged.note(event) },
    );
  const threads = await start().catch((error: unknown) => {
    throw openFailure(folder, error);
  });
  const { report } = threads;
  const startThreads = (): Promise<StoreThreads> => start(report.file);
  const dependencies = { clock, logger, startThreads, commits, onFatal };
  supervisor = new WorkerSupervisor(dependencies, threads);
  return { supervisor, report };
}

/** A caller may try again after so long, as room may have been made by then. */
const FULL_RETRY_MS = 1_000;

/** Says why the data folder cannot be opened, for a person. */
export function openFailure(folder: string, error: unknown): unknown {
  if (!(error instanceof EngineFailure)) return error;
  if (error.kind === "in_use") return inUse(folder);
  const advice = error.kind === "fatal" ? ` If it is damaged, ${restoreAdvice(folder)}.` : "";
  const message = `The data folder ${folder} cannot be opened: ${error.message}.${advice}`;
  const failure = new EvregError("unavailable", message, { folder }, { cause: error });
  // A command ends here as it does where a server answers that its disk is full.
  if (error.kind === "full") failure.retryAfterMs = FULL_RETRY_MS;
  return failure;
}

export interface MigrationStatus {
  /** The data file. */
  readonly file: string;
  readonly exists: boolean;
  /** The form of the data file; 0 when it is empty or missing. */
  readonly current: number;
  /** The form this evreg brings it to. */
  readonly latest: number;
  /** What is to be done: one step that brings the file to the latest form, or none. */
  readonly pending: readonly { readonly version: number; readonly name: string }[];
  /** The room that the upgrade needs at most; absent where there is nothing to do. */
  readonly room?: UpgradeRoom;
  /** The forms that the file was brought to now; none for a dry run. */
  readonly applied?: readonly number[];
  /** Where the file is as it was before. */
  readonly copy?: string;
}

/**
 * Answers what a start would do to the folder's file. Reads a few bytes and takes no lock, so it also works while a server has
 * the folder.
 * @throws EvregError as `openLibsqlStore` for a file that is not evreg's or is newer, or is missing beside what is left of it
 */
export function inspectMigrations(folder: string): MigrationStatus {
  const file = dataFileOf(folder);
  const exists = fileExists(file);
  let current = 0;
  if (existsSync(folder)) {
    const releaseFolder = holdFolder(folder);
    try {
      current = admittedVersion(folder);
    } finally {
      releaseFolder();
    }
  }
  const pending = current === FORM ? [] : [{ version: FORM, name: FORM_NAME }];
  const room = upgradeRoom(file, current);
  return { file, exists, current, latest: FORM, pending, ...(room === undefined ? {} : { room }) };
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
    mustHaveUpgradeRoom(before.file, before.current);
    return { ...before, applied: [] };
  }
  const started_at = toIso(systemClock.now());
  const owner = { pid: process.pid, command: "migrate", instance: randomUUID(), started_at };
  await (await openLibsqlStore({ logger: silentLogger, ...options, folder, owner })).close();
  const applied = before.pending.map(({ version }) => version);
  const isUpgraded = applied.length > 0 && before.current > 0;
  return {
    ...inspectMigrations(folder),
    applied,
    ...(isUpgraded ? { copy: `${fileBehindLink(before.file)}.${KEPT_AS}` } : {}),
  };
}
