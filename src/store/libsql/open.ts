import { setTimeout as pause } from "node:timers/promises";
import { EvregError } from "../../domain/error.ts";
import { CheckpointLog, type CommitReport, DamagedEvents } from "../health.ts";
import { type Clock, systemClock, systemRandom } from "../../runtime/clock.ts";
import { restoreLeftovers } from "../../runtime/files.ts";
import { findServer } from "../../runtime/find-server.ts";
import type { Logger } from "../../runtime/logger.ts";
import { tryWriteOwner, type Owner, readOwner, removeOwner } from "../../runtime/owner-file.ts";
import type { EncryptionKeys } from "../secret-cipher.ts";
import type { Store, StoreChange } from "../store.ts";
import { acceptLoss } from "./files/accept-loss.ts";
import { Backups } from "./files/backup.ts";
import {
  copiesIn,
  dataFileOf,
  holdFolder,
  inUse,
  mustBeOfLatestForm,
  prepareFile,
  prepareFolder,
  readFileVersion,
} from "./files/data-folder.ts";
import { CODECS, createLibsqlStore } from "./store.ts";
import type { FileId } from "./thread/file-guard.ts";
import type { OpenReport } from "./thread/protocol.ts";
import { EngineFailure } from "./thread/sql.ts";
import { WorkerSupervisor } from "./thread/supervisor.ts";
import { WorkerClient } from "./thread/worker-client.ts";
import { WriteQueue } from "./thread/write-queue.ts";

export interface OpenOptions {
  /** Made if it is missing. */
  readonly folder: string;
  /** Written into the folder once it is held, for others who find it in use. */
  readonly owner: Owner;
  readonly logger: Logger;
  readonly clock?: Clock;
  /** Without them secrets are kept as they are; a file that is encrypted already cannot be opened then. */
  readonly encryption?: EncryptionKeys | undefined;
  /** Whether it goes on without what a damaged log has lost, which is refused otherwise. */
  readonly acceptsLoss?: boolean;
  /** Whether a file of an older form is refused instead of brought up to date, after which an older evreg could not open it. */
  readonly keepsForm?: boolean;
  /** Whether a folder that holds no data yet is refused instead of given a data file. */
  readonly needsData?: boolean;
  /** Called after each commit. */
  readonly onCommit?: (commit: CommitReport) => void;
  /** Called after a commit that did more than it was asked to do. */
  readonly onChange?: (change: StoreChange) => void;
  /** Called at most once, when the store can never commit again; whoever opened it then closes it and stops. */
  readonly onFatal?: (error: EvregError) => void;
}

/**
 * Opens the data folder for this process alone: takes its lock, brings its file up to date (a copy is kept), and makes
 * deliveries that a dead process had under way due again.
 * @throws EvregError `conflict` naming the owner when the folder is in use; `usage` when it is no folder, or holds
 * another program's file, one of a newer evreg or one encrypted with another key; `unavailable` when it cannot be written
 * to, or its log is damaged
 */
export async function openLibsqlStore(options: OpenOptions): Promise<Store> {
  const { folder, owner, logger, clock = systemClock } = options;
  prepareFolder(folder);
  const releaseFolder = holdFolder(folder);
  try {
    if (await isServed(folder)) throw inUse(folder);
    if (options.acceptsLoss === true) await goOnWithoutLost(options, clock);
    const checkpoints = new CheckpointLog(logger);
    const { supervisor, report } = await openFile(options, clock, (commit) => {
      checkpoints.committed(commit);
      options.onCommit?.(commit);
    });
    const queue = new WriteQueue((batch) => supervisor.write(batch), CODECS);
    const backups = new Backups(dataFileOf(folder), report.file, supervisor, clock);
    const letGo = async (): Promise<void> => {
      await Promise.all([queue.close(), backups.end()]);
      // Gone before the lock is: who comes next writes their own.
      removeOwner(folder, owner.instance);
      await supervisor.close();
      await backups.close();
      releaseFolder();
    };
    try {
      tryWriteOwner(folder, owner, logger);
    } catch (error) {
      await letGo();
      throw error;
    }
    logReport(logger, report, folder);
    if (owner.command === "serve") tellLeft(logger, folder);
    const { dataId } = report;
    const key = options.encryption?.key;
    const damaged = new DamagedEvents(logger);
    return createLibsqlStore({ supervisor, queue, damaged, backups, dataId, key, letGo }, options.onChange);
  } catch (error) {
    releaseFolder();
    throw error;
  }
}

/**
 * Asks the server that the owner file names. Its lock is on the data file that it opened, and keeps nobody out once that
 * was taken away. Where nobody answers, or the file cannot be trusted, the lock has to do.
 */
async function isServed(folder: string): Promise<boolean> {
  const server = await findServer(folder).catch(() => undefined);
  return server !== undefined;
}

async function goOnWithoutLost({ folder, logger }: OpenOptions, clock: Clock): Promise<void> {
  const accepted = await acceptLoss(dataFileOf(folder), clock.now());
  if (accepted === undefined) return;
  const { log, replaced } = accepted;
  logger.warn(
    { transactions: log.commitsBehind, pages: log.pagesBehind, kept: replaced },
    `The data go on without the ${log.commitsBehind} transactions behind the damage in the log. Both files are kept as they were, as ${replaced} and ${replaced}-wal, and no number is given twice.`,
  );
}

async function openFile(
  { folder, logger, onFatal, encryption, keepsForm = false, needsData = false }: OpenOptions,
  clock: Clock,
  onCommit: (commit: CommitReport) => void,
): Promise<{ supervisor: WorkerSupervisor; report: OpenReport }> {
  const version = readFileVersion(dataFileOf(folder));
  if (keepsForm) mustBeOfLatestForm(dataFileOf(folder), version);
  const path = prepareFile(folder, needsData);
  let supervisor: WorkerSupervisor | undefined;
  const start = (which: { release: boolean; expected?: FileId }): Promise<WorkerClient> =>
    WorkerClient.start(
      { path, encryption, ...which, nowMs: clock.now() },
      (reason) => supervisor?.stop(reason),
      onCommit,
    );
  const worker = await startAlone(folder, () => start({ release: true }));
  const startWorker = (): Promise<WorkerClient> => start({ release: false, expected: worker.report.file });
  supervisor = new WorkerSupervisor(
    { clock, logger, startWorker, onFatal: (error) => onFatal?.(error) },
    worker,
  );
  return { supervisor, report: worker.report };
}

/** They do no harm to this start, but may to whoever takes them for something else. */
function tellLeft(logger: Logger, folder: string): void {
  const { secondNames, unfinished } = restoreLeftovers(folder);
  const left = [...secondNames, ...unfinished];
  if (left.length === 0) return;
  logger.warn(
    { left },
    "A restore was cut off and left these names in the data folder; evreg doctor says how to remove them.",
  );
}

function logReport(logger: Logger, report: OpenReport, folder: string): void {
  const { migrated, copy, released, encrypted, taken, dropped } = report;
  if (copy !== undefined) {
    logger.info(
      { forms: migrated, copy },
      "The data file was brought up to date; a copy from before is kept.",
    );
  }
  if (encrypted !== undefined) {
    logger.info({ subscriptions: encrypted }, "Secrets are encrypted with the key from now on.");
    const copies = copiesIn(folder);
    if (copies.length > 0) {
      logger.warn({ copies }, "Copies kept by earlier upgrades hold secrets as they were then; remove them.");
    }
  }
  if (released > 0) {
    logger.info({ deliveries: released }, "Deliveries that were under way at a crash are due again.");
  }
  if (dropped > 0) {
    logger.warn(
      { transactions: dropped },
      "The last transactions in the log could not be read and were dropped. After a cut of the power that is as it must be, and nobody was told that they were stored. If there was none, the log was damaged, and the last that was acknowledged may be lost. None of their numbers is given out again.",
    );
  }
  if (taken.length > 0) {
    logger.warn(
      { actions: taken },
      "Actions of these names were created before evreg kept the names for events about itself. They stay as they are, and those events are not told.",
    );
  }
}

/** Two first starts at the same moment may refuse each other; the one with the shorter pause then gets in. */
const TRIES = 4;
const LONGEST_PAUSE_MS = 80;

/**
 * Starts the worker, which takes the file's lock.
 * @throws EvregError `conflict` naming the owner when another process has it; `unavailable` when the engine cannot open it
 */
export async function startAlone(folder: string, start: () => Promise<WorkerClient>): Promise<WorkerClient> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await start();
    } catch (error) {
      if (!(error instanceof EngineFailure)) throw error;
      if (error.kind !== "in_use") {
        throw new EvregError(
          "unavailable",
          `The data folder ${folder} cannot be opened: ${error.message}.`,
          { folder },
          { cause: error },
        );
      }
      if (tries === TRIES || ownerLives(folder)) throw inUse(folder);
      await pause(systemRandom.fraction() * LONGEST_PAUSE_MS);
    }
  }
}

function ownerLives(folder: string): boolean {
  const owner = readOwner(folder);
  if (owner === undefined) return false;
  try {
    process.kill(owner.pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}
