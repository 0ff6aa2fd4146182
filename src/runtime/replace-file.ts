import { randomUUID } from "node:crypto";
import { closeSync, fsyncSync, openSync, renameSync, rmSync, writeSync } from "node:fs";

/**
 * Puts a text in a file's place in one step, readable by its owner only; when it fails, nothing is left behind.
 * @param options `durable`: on the disk before it is named, for what cannot be made again
 * @throws what the system says
 */
export function replaceFile(path: string, text: string, options: { durable: boolean }): void {
  // Where others may write too, a name they could guess might be a link of theirs by now.
  const temporary = `${path}.${randomUUID()}`;
  try {
    const file = openSync(temporary, "wx", 0o600);
    try {
      writeSync(file, text);
      if (options.durable) fsyncSync(file);
    } finally {
      closeSync(file);
    }
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  }
}
