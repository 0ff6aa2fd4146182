import { open, readFile } from "node:fs/promises";
import { EvregError } from "../domain/error.ts";
import { syncFile } from "../runtime/replace-file.ts";
import { usage } from "./usage.ts";

/**
 * Writes a file of the person's own; it is on the disk once this is done. One that holds the same already is left alone, so
 * that no build is set off.
 * `usage` names what could not be written.
 */
export async function writeFile(path: string, text: string): Promise<void> {
  const before = await readFile(path, "utf8").catch(() => undefined);
  if (before === text) return;
  try {
    await writeThrough(path, text);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") throw usage(`There is no folder for ${path}; make it first.`);
    if (code === "EISDIR") throw usage(`${path} is a folder; name a file.`);
    const [why = code] = message.split(", ");
    throw new EvregError("unavailable", `${path} could not be written (${why}).`, {}, { cause: error });
  }
}

/**
 * Writes a text to the disk, or into a pipe or a device.
 * @throws what the system says
 */
export async function writeThrough(path: string, text: string): Promise<void> {
  const file = await open(path, "w");
  try {
    await file.writeFile(text);
    syncFile(file.fd, path);
  } finally {
    await file.close();
  }
}
