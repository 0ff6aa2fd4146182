import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { systemClock, toIso } from "../../runtime/clock.ts";
import { type Logger, silentLogger } from "../../runtime/logger.ts";
import type { EncryptionKeys } from "../secret-cipher.ts";
import { admittedVersion, dataFileOf, fileExists, holdFolder } from "./files/data-folder.ts";
import { KEPT_AS, mustHaveUpgradeRoom, type UpgradeRoom, upgradeRoom } from "./files/older-forms.ts";
import { fileBehindLink } from "./files/replace-file.ts";
import { FORM, FORM_NAME } from "./files/schema.ts";
import { openLibsqlStore } from "./open.ts";

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
}

export interface MigrationResult extends MigrationStatus {
  /** The forms that the file was brought to now; none for a dry run. */
  readonly applied: readonly number[];
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
  const current = existsSync(folder) ? heldFileVersion(folder) : 0;
  const pending = current === FORM ? [] : [{ version: FORM, name: FORM_NAME }];
  const room = upgradeRoom(file, current);
  return {
    ...(room === undefined ? {} : { room }),
    file,
    exists,
    current,
    latest: FORM,
    pending,
  };
}

function heldFileVersion(folder: string): number {
  const releaseFolder = holdFolder(folder);
  try {
    return admittedVersion(folder);
  } finally {
    releaseFolder();
  }
}

/**
 * Brings the folder's file up to date, as a start does.
 * @param options `dryRun`: changes nothing; `encryption` and `acceptsLoss` as for `openLibsqlStore`
 * @throws EvregError as `openLibsqlStore`
 */
export async function migrate(
  folder: string,
  {
    dryRun = false,
    encryption,
    acceptsLoss = false,
    logger = silentLogger,
  }: {
    dryRun?: boolean;
    encryption?: EncryptionKeys | undefined;
    acceptsLoss?: boolean;
    logger?: Logger;
  } = {},
): Promise<MigrationResult> {
  const before = inspectMigrations(folder);
  if (dryRun) {
    mustHaveUpgradeRoom(before.file, before.current);
    return { ...before, applied: [] };
  }
  const owner = {
    pid: process.pid,
    command: "migrate",
    instance: randomUUID(),
    started_at: toIso(systemClock.now()),
  };
  const store = await openLibsqlStore({ folder, owner, logger, encryption, acceptsLoss });
  await store.close();
  const applied = before.pending.map(({ version }) => version);
  const after = { ...inspectMigrations(folder), applied };
  const hasCopy = applied.length > 0 && before.current > 0;
  return hasCopy ? { ...after, copy: `${fileBehindLink(before.file)}.${KEPT_AS}` } : after;
}
