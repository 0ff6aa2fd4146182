import { readFile, writeFile as write } from "node:fs/promises";
import { EvregError } from "../domain/error.ts";
import { usage } from "./usage.ts";

/**
 * Writes a file of the person's own; one that holds the same already is left alone, so that no build is set off.
 * `usage` names what could not be written.
 */
export async function writeFile(path: string, text: string): Promise<void> {
  const before = await readFile(path, "utf8").catch(() => undefined);
  if (before === text) return;
  try {
    await write(path, text);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code === "ENOENT") throw usage(`There is no folder for ${path}; make it first.`);
    if (code === "EISDIR") throw usage(`${path} is a folder; name a file.`);
    const [why = code] = message.split(", ");
    throw new EvregError("unavailable", `${path} could not be written (${why}).`, {}, { cause: error });
  }
}
