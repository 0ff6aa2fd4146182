import { readdirSync, statSync } from "node:fs";
import { join } from "node:path";

const DATA_FILE = "evreg.db";

/** What a restore that was cut off, or is under way, has left beside the data file: names in the folder. */
export interface LeftByRestore {
  /**
   * Further names of the data file itself, each meant for the data that was to be replaced. They look like copies from
   * before; whoever opened one would have the file without its log.
   */
  readonly secondNames: readonly string[];
  /** Copies of backups that did not get their place. */
  readonly unfinished: readonly string[];
}

/** By looking only: opening the data file, by whatever name, would drop its owner's lock (see `store/libsql/held-folders.ts`). */
export function leftByRestore(folder: string): LeftByRestore {
  const names = readdirSync(folder);
  const isSecondName = (name: string): boolean => isSameFile(join(folder, name), join(folder, DATA_FILE));
  return {
    secondNames: keptByRestores(names).filter(isSecondName),
    unfinished: names.filter((name) => /^evreg\.db\.restore-[-\da-f]{36}$/.test(name)),
  };
}

/** Of names in a folder, those of data that a restore replaced, without their logs. */
export function keptByRestores(names: readonly string[]): readonly string[] {
  return names.filter((name) => /^evreg\.db\.before-restore-\w+$/.test(name));
}

/** Whether it is one file by two names. */
export function isSameFile(one: string, other: string): boolean {
  const [first, second] = [one, other].map((path) => statSync(path, { bigint: true, throwIfNoEntry: false }));
  // Some file systems number no files.
  if (first === undefined || first.ino === 0n) return false;
  return first.ino === second?.ino && first.dev === second.dev;
}
