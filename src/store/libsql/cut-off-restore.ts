import { existsSync, readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { EvregError } from "../../domain/error.ts";
import { isSameFile } from "../../runtime/left-by-restore.ts";

/**
 * Refuses a folder in which a restore was cut off between the old data and the new: a start would make an empty file
 * there, or go on without the newest part of what was kept.
 * @param file the data file
 * @throws EvregError `unavailable` with what to do
 */
export function mustNotBeCutOff(file: string): void {
  const name = basename(file);
  const left = readdirSync(dirname(file)).filter((other) => other.startsWith(`${name}.`) && isLeft(other));
  if (statSync(file, { throwIfNoEntry: false }) === undefined) {
    if (left.length > 0) throw cutOff(`${file} is missing`, file, left);
    return;
  }
  const isWaiting = left.some((other) => /\.restore-[-\da-f]{36}$/.test(other));
  const parted = left.find((other) => {
    if (!other.startsWith(`${name}.before-restore-`) || !other.endsWith("-wal")) return false;
    // The one at the first name is still the old one where it is the same file by its second, or, on a file system that
    // has no second names, where none is kept yet and the new one still waits.
    const kept = join(dirname(file), other.slice(0, -"-wal".length));
    return (isSameFile(kept, file) || (isWaiting && !existsSync(kept))) && sizeBeside(file, other) > 0;
  });
  if (parted !== undefined) throw cutOff(`${file} is without its log ${parted}`, file, [parted]);
}

function isLeft(name: string): boolean {
  return name.includes(".before-restore-") || name.includes(".restore-");
}

function sizeBeside(file: string, name: string): number {
  return statSync(join(dirname(file), name), { throwIfNoEntry: false })?.size ?? 0;
}

function cutOff(what: string, file: string, left: readonly string[]): EvregError {
  const name = basename(file);
  // Into an empty folder there is nothing from before.
  const back = left.some((one) => one.includes(".before-restore-"))
    ? `Restore the backup again; or, to go back to the data from before, rename the newest ${name}.before-restore-… to ${name}, ` +
      `and the one ending in -wal to ${name}-wal if there is one. To begin without that data, move all of them away.`
    : "Restore the backup again; or, to begin without it, move what was left away.";
  return new EvregError(
    "unavailable",
    `The data file ${what}: a restore was cut off, or is under way. It left ${left.join(", ")}. ${back}`,
    { file, left },
  );
}
