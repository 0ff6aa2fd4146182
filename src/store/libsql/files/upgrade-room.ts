import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { EvregError } from "../../../domain/error.ts";
import { byteCount } from "../../../domain/formats.ts";
import { sizeOf } from "../../../runtime/files.ts";
import { fileBehindLink } from "./replace-file.ts";
import { FORM } from "./schema.ts";

/** How the name of an older file goes on which an upgrade has replaced. */
export const KEPT_AS = `before-v${FORM}`;

/** Room on the disk of a data file, in bytes. */
export interface UpgradeRoom {
  readonly needed_bytes: number;
  readonly free_bytes: number;
}

/**
 * The new file beside the old one, which stays. Payloads of form 21 get longer in it, by how much depends on the names of their
 * members.
 */
const SHARE_OF_FILE = 2;
/** For what does not grow with the file. */
const EXTRA_BYTES = 8 * 1024 * 1024;

/** `undefined` for a file that needs no upgrade. */
export function upgradeRoom(path: string, version: number): UpgradeRoom | undefined {
  return version === 0 || version >= FORM ? undefined : roomFor(path);
}

function roomFor(path: string): UpgradeRoom {
  const { bavail, bsize } = statfsSync(dirname(fileBehindLink(path)));
  const bytes = sizeOf(path) + sizeOf(`${path}-wal`);
  return { needed_bytes: Math.ceil(bytes * SHARE_OF_FILE) + EXTRA_BYTES, free_bytes: bavail * bsize };
}

/** @throws EvregError `unavailable` before anything is changed */
export function mustHaveUpgradeRoom(path: string, version: number): void {
  const isNeeded = upgradeRoom(path, version) !== undefined;
  if (isNeeded) mustHaveRoom(path, `bring the data file ${path} from form ${version} to ${FORM}`);
}

/** @throws EvregError `unavailable` where the data file cannot be written anew beside itself */
export function mustHaveRoom(path: string, what: string): void {
  const room = roomFor(path);
  if (room.free_bytes >= room.needed_bytes) return;
  throw new EvregError(
    "unavailable",
    `There is no room to ${what}: beside the file that is kept, that takes up to ${byteCount(room.needed_bytes)} on its disk, and ${byteCount(room.free_bytes)} are free. ` +
      "Nothing was changed. Make room, or move the data folder to a larger disk.",
    { file: path, ...room },
  );
}
