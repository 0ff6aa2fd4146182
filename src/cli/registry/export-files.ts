import { createHash } from "node:crypto";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { Document, isScalar, visit } from "yaml";
import { usage } from "../usage.ts";
import type { ExportedRegistry } from "./export.ts";

export type ExportFormat = "yaml" | "json";

/** Bytes of a file's name that every file system has room for, with the extension. */
const LONGEST_NAME = 200;

export function exportText(registry: ExportedRegistry, format: ExportFormat): string {
  if (format === "json") return `${JSON.stringify(registry, null, 2)}\n`;
  // No anchors for what happens to be equal, and no line breaks inside of texts.
  const document = new Document(registry, { aliasDuplicateObjects: false });
  visit(document, {
    Pair(_, { key }) {
      // Unquoted, a member of this name would be taken for what it merges in.
      if (isScalar(key) && key.value === "<<") key.type = "QUOTE_DOUBLE";
    },
  });
  return document.toString({ lineWidth: 0 });
}

/** @throws `usage` naming what cannot be written */
export async function writeExport(path: string, text: string): Promise<void> {
  await written(path, () => writeFile(path, text));
}

/**
 * A file for each application.
 * @returns the names of files in the folder that `apply` would read as well and that were not written now
 */
export async function writeExports(
  folder: string,
  registries: ReadonlyMap<string, ExportedRegistry>,
  format: ExportFormat,
): Promise<string[]> {
  await written(folder, () => mkdir(folder, { recursive: true }));
  const names = new Set<string>();
  for (const [application, registry] of registries) {
    const stem = fileStem(application);
    // Some file systems take Shop and shop for one.
    const isTaken = [...names].some((name) => name.toLowerCase() === `${stem}.${format}`.toLowerCase());
    const name = `${isTaken ? `${stem}-${digest(application)}` : stem}.${format}`;
    names.add(name);
    const path = join(folder, name);
    await written(path, () => writeFile(path, exportText(registry, format)));
  }
  const there = await written(folder, () => readdir(folder));
  return there.filter((name) => /^\.(?:ya?ml|json)$/i.test(extname(name)) && !names.has(name)).toSorted();
}

/** An application's name is any text; what could be a path, a hidden file or a schema's is written as `%2F`. */
function fileStem(application: string): string {
  const stem = application
    .replace(/[^A-Za-z0-9._-]/gu, (character) => encodeURIComponent(character))
    .replace(/^\.|\.(?=schema$)/gi, "%2E");
  return stem.length <= LONGEST_NAME ? stem : `${stem.slice(0, LONGEST_NAME - 17)}-${digest(application)}`;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

async function written<T>(path: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const [why] = (error as Error).message.split(", ");
    throw usage(`${path} cannot be written (${why}).`);
  }
}
