import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname, join, resolve } from "node:path";
import { Document, isScalar, visit } from "yaml";
import { EvregError } from "../../domain/error.ts";
import { makeFolder } from "../../runtime/make-folder.ts";
import { printableJson, printableLine } from "../printable.ts";
import { usage } from "../usage.ts";
import { writeThrough } from "../write-file.ts";
import type { ExportedRegistry } from "./export.ts";

export type ExportFormat = "yaml" | "json";

/** For others as far as the process gives them anything. */
const OPEN_FOLDER = 0o777;
/** Bytes of a file's name that every file system has room for, with the extension. */
const LONGEST_NAME = 200;

/** What acts on a terminal stands as its escape, which changes no value. */
export function exportText(registry: ExportedRegistry, format: ExportFormat): string {
  if (format === "json") return printableJson(`${JSON.stringify(registry, null, 2)}\n`);
  // No anchors for what happens to be equal, and no line breaks inside of texts.
  const document = new Document(registry, { aliasDuplicateObjects: false });
  visit(document, {
    Pair(_, { key }) {
      // Unquoted, a member of this name would be taken for what it merges in.
      if (isScalar(key) && key.value === "<<") key.type = "QUOTE_DOUBLE";
    },
    Scalar(_, scalar) {
      const { value } = scalar;
      // Only between these has YAML the escapes of JSON.
      if (typeof value === "string" && printableJson(value) !== value) scalar.type = "QUOTE_DOUBLE";
    },
  });
  return printableJson(document.toString({ lineWidth: 0 }));
}

/** @throws `usage` naming what cannot be written */
export async function writeExport(path: string, text: string): Promise<void> {
  await written(path, () => writeThrough(path, text));
}

/** Names of files in the folder. */
export interface WrittenExports {
  readonly written: readonly string[];
  /** They held the same already. */
  readonly unchanged: readonly string[];
  /** What `apply` would read as well, and this export did not make. */
  readonly others: readonly string[];
}

/**
 * A file for each application.
 * @throws `conflict` before anything is written, where a file holds something else and `force` does not say to replace it
 */
export async function writeExports(
  folder: string,
  registries: ReadonlyMap<string, ExportedRegistry>,
  { format, force = false }: { readonly format: ExportFormat; readonly force?: boolean },
): Promise<WrittenExports> {
  await written(folder, () => makeFolder(resolve(folder), OPEN_FOLDER));
  const files = exportFiles(registries, format);
  const there = await written(folder, () => readdir(folder));
  const before = new Map<string, string>();
  for (const name of there.filter((one) => files.has(one))) {
    const path = join(folder, name);
    before.set(name, await written(path, () => readFile(path, "utf8")));
  }
  const edited = [...before].filter(([name, text]) => files.get(name) !== text).map(([name]) => name);
  if (edited.length > 0 && !force) throw isEdited(folder, edited);
  const changed = [...files].filter(([name, text]) => before.get(name) !== text);
  for (const [name, text] of changed) await writeExport(join(folder, name), text);
  return {
    written: changed.map(([name]) => name),
    unchanged: [...files.keys()].filter((name) => before.get(name) === files.get(name)),
    others: there.filter((name) => /^\.(?:ya?ml|json)$/i.test(extname(name)) && !files.has(name)).toSorted(),
  };
}

/** The text of each file, by its name. */
function exportFiles(
  registries: ReadonlyMap<string, ExportedRegistry>,
  format: ExportFormat,
): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  for (const [application, registry] of registries) {
    const stem = fileStem(application);
    // Some file systems take Shop and shop for one.
    const isTaken = [...files.keys()].some(
      (name) => name.toLowerCase() === `${stem}.${format}`.toLowerCase(),
    );
    const name = `${isTaken ? `${stem}-${digest(application)}` : stem}.${format}`;
    files.set(name, exportText(registry, format));
  }
  return files;
}

function isEdited(folder: string, names: readonly string[]): EvregError {
  const [first = "", ...more] = names.toSorted();
  const which = more.length === 0 ? first : `${first} and ${more.length} more`;
  return new EvregError(
    "conflict",
    `${printableLine(folder)} holds ${printableLine(which)} with other contents. Nothing was written. Name another folder, or replace what differs with --force.`,
  );
}

/**
 * An application's name is any text; what could be a path, a hidden file or a schema's is written as `%2F`, and a space,
 * which people type in names, as a dash.
 */
function fileStem(application: string): string {
  const stem = application
    .replaceAll(" ", "-")
    .replace(/[^A-Za-z0-9._-]/gu, (character) => encodeURIComponent(character))
    .replace(/^\.|\.(?=schema$)/gi, "%2E");
  return stem.length <= LONGEST_NAME ? stem : `${stem.slice(0, LONGEST_NAME - 17)}-${digest(application)}`;
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 16);
}

async function written<T>(path: string, act: () => T | Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const [why] = (error as Error).message.split(", ");
    throw usage(`${path} cannot be written (${why}).`);
  }
}
