import { readdir, realpath, stat } from "node:fs/promises";
import { dirname, extname, join, resolve, sep } from "node:path";
import { readInput, readRegularFile } from "../input.ts";
import { usage } from "../usage.ts";
import { parseDocuments, type ParsedDocument, type Problem } from "./document.ts";

/** A file that declares, or one that such a file refers to. */
export interface RegistryFile {
  /** As it was reached from what was typed. */
  readonly name: string;
  /** Absolute, links resolved; of stdin, the working directory. */
  readonly path: string;
  /** Where paths in it start. */
  readonly folder: string;
  /** What it may refer to lies in here: the folder typed, or that of the file typed. */
  readonly within: string;
  readonly documents: readonly ParsedDocument[];
}

const EXTENSIONS = new Set([".yaml", ".yml", ".json"]);
/** By this name a file in a folder is a schema, whoever refers to it. */
const SCHEMA_FILE = /\.schema\.(?:ya?ml|json)$/i;

/**
 * The files that `-f` names, a folder's in the order of their names.
 * @throws `usage` for what cannot be read
 */
export async function readFiles(
  typed: readonly string[],
): Promise<{ files: RegistryFile[]; problems: Problem[] }> {
  const files: RegistryFile[] = [];
  const problems: Problem[] = [];
  for (const start of typed) {
    const isFolder = start !== "-" && (await isDirectory(start));
    const names = isFolder ? await filesIn(start) : [start];
    if (names.length === 0) throw usage(`There is no .yaml, .yml or .json file in ${start}.`);
    for (const name of names) {
      const path = name === "-" ? process.cwd() : await realpath(name).catch(() => resolve(name));
      const folder = name === "-" ? path : dirname(resolve(name));
      const within = isFolder ? await realpath(start) : await realpath(folder).catch(() => folder);
      const bytes = isFolder ? await readRegularFile(name) : await readInput(name);
      const read = parseDocuments(name === "-" ? "stdin" : name, bytes);
      problems.push(...read.problems);
      files.push({ name, path, folder, within, documents: read.documents });
    }
  }
  return { files, problems };
}

async function isDirectory(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() === true;
}

/** Hidden ones, `node_modules` and schemas are left out, and links to folders are not followed. */
async function filesIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const found: string[] = [];
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (entry.name.startsWith(".") || entry.name === "node_modules") continue;
    if (entry.isDirectory()) found.push(...(await filesIn(path)));
    else if (EXTENSIONS.has(extname(entry.name).toLowerCase()) && !SCHEMA_FILE.test(entry.name)) {
      if (!(await isDirectory(path))) found.push(path);
    }
  }
  return found;
}

/**
 * A file that another refers to by `path`.
 * @param within what it must lie in, links resolved
 * @throws `usage` for one elsewhere: whoever may write registry files must not get others' files read by them
 */
export async function referredFile(path: string, from: string, within: string): Promise<string> {
  const wanted = resolve(from, path);
  const real = await realpath(wanted).catch(() => undefined);
  if (real === undefined) throw usage(`There is no file ${path} in ${from}.`);
  if (real !== within && !real.startsWith(within.endsWith(sep) ? within : within + sep)) {
    throw usage(`${path} lies outside ${within}; a file may only refer to those in there.`);
  }
  return real;
}
