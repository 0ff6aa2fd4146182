import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { EvregError } from "../../../domain/error.ts";
import { byteCount } from "../../../domain/formats.ts";
import { sizeOf } from "../../../runtime/files.ts";
import { LATEST_VERSION } from "./migrations.ts";

/** Room on the disk of a data file, in bytes. */
export interface UpgradeRoom {
  readonly needed_bytes: number;
  readonly free_bytes: number;
}

/**
 * The copy takes as much as the file. A step that rewrites each row takes as much again in the log, and more where its rows
 * get longer. Measured from forms 1 to 12, with 60,000 and 200,000 events: 1.5 to 2.1 times the file.
 */
const SHARE_OF_FILE = 2.25;
/** For what does not grow with the file. */
const EXTRA_BYTES = 8 * 1024 * 1024;

/** `undefined` for a file that needs no upgrade. */
export function upgradeRoom(path: string, version: number): UpgradeRoom | undefined {
  if (version === 0 || version >= LATEST_VERSION) return undefined;
  const { bavail, bsize } = statfsSync(dirname(path));
  const bytes = sizeOf(path) + sizeOf(`${path}-wal`);
  return { needed_bytes: Math.ceil(bytes * SHARE_OF_FILE) + EXTRA_BYTES, free_bytes: bavail * bsize };
}

/** @throws EvregError `unavailable` before anything is changed */
export function mustHaveUpgradeRoom(path: string, version: number): void {
  const room = upgradeRoom(path, version);
  if (room === undefined || room.free_bytes >= room.needed_bytes) return;
  throw new EvregError(
    "unavailable",
    `There is no room to bring the data file ${path} from form ${version} to ${LATEST_VERSION}: with the copy that is kept, that takes up to ${byteCount(room.needed_bytes)} on its disk, and ${byteCount(room.free_bytes)} are free. ` +
      "Nothing was changed. Make room, or move the data folder to a larger disk.",
    { file: path, ...room },
  );
}
