import { randomUUID } from "node:crypto";
import { chmodSync, constants, copyFileSync, truncateSync } from "node:fs";
import { dirname } from "node:path";
import { EvregError } from "../../../domain/error.ts";
import { fileTimestamp } from "../../../runtime/clock.ts";
import type { Sequences } from "../thread/protocol.ts";
import { checkLog, type LogCheck, logOf } from "../thread/wal-check.ts";
import { restoreAdvice } from "./earlier-data.ts";
import { checkFile, moveNumbers, settleFile } from "./file-tasks.ts";
import { removeCopy, replaceFile } from "./replace-file.ts";

interface AcceptedLoss {
  readonly log: LogCheck;
  /** Where the data file is as it was, with its log. */
  readonly replaced: string;
}

/**
 * Goes on without what a damaged log has behind its damage. As in a restore, the data are made whole in a copy that then
 * replaces the file, which stays beside it with its log. Cut off anywhere, this leaves the old data or the new, or the next start puts the new in place. The numbers
 * go on far beyond, so that none is given twice.
 *
 * To be called only while this process has no connection to the file, and holds its folder.
 * @returns what was given up; `undefined` where the log is not damaged, and nothing was done
 * @throws EvregError `unavailable` when there is no room for a copy, or what is left is not whole
 */
export async function acceptLoss(file: string, nowMs: number): Promise<AcceptedLoss | undefined> {
  const log = checkLog(file);
  if (!log.isDamaged) return undefined;
  return withWholeCopy(file, log, async (copy) => {
    await settleFile(copy);
    await checkFile(copy, { name: `What ${file} holds without the end of its log` });
    await moveNumbers(copy, nowMs);
    return { log, replaced: replaceFile(file, copy, `before-restore-${fileTimestamp(nowMs)}`) };
  }).catch((error: unknown) => {
    throw refusal(file, error);
  });
}

/**
 * The numbers that damaged data have given, as far as a copy of what is left still shows them.
 * @throws EvregError `unavailable` when there is no room for the copy
 */
export async function numbersOfDamaged(file: string, nowMs: number): Promise<Sequences> {
  try {
    return await withWholeCopy(file, checkLog(file), (copy) => moveNumbers(copy, nowMs));
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOSPC") throw refusal(file, error);
    return {};
  }
}

/** The copy's log ends where the engine would end, so that what is behind is never used. */
async function withWholeCopy<T>(
  file: string,
  { wholeBytes }: LogCheck,
  work: (copy: string) => Promise<T>,
): Promise<T> {
  const copy = `${file}.restore-${randomUUID()}`;
  try {
    copyFileSync(file, copy, constants.COPYFILE_EXCL);
    chmodSync(copy, 0o600);
    if (wholeBytes > 0) {
      copyFileSync(logOf(file), `${copy}-wal`, constants.COPYFILE_EXCL);
      truncateSync(`${copy}-wal`, wholeBytes);
    }
    return await work(copy);
  } finally {
    removeCopy(copy);
  }
}

function refusal(file: string, error: unknown): EvregError {
  const { code, message } = error as Error & { code?: string };
  const why = code === "ENOSPC" ? "there is no room for a copy of it" : message;
  return new EvregError(
    "unavailable",
    `The data of ${file} cannot go on without the end of its log: ${why.replace(/\.$/, "")}. Nothing was changed; ` +
      `${restoreAdvice(dirname(file), " --force")}, which keeps the two files.`,
    { file },
    { cause: error },
  );
}
