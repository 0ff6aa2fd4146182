import { readdir, realpath, stat } from "node:fs/promises";
import { dirname, join, resolve, sep } from "node:path";
import { isAlias, isMap, isScalar, isSeq, type Node } from "yaml";
import { messageOf } from "../../domain/error.ts";
import { MAX_ALIASES, readYaml, startOf, TOO_MANY_ALIASES } from "../../config/yaml.ts";
import { JsonError } from "../../json/json-error.ts";
import { isJsonText, readInput, textFault } from "../io/input.ts";
import { parseJson } from "../../json/raw-json.ts";
import type { FieldPath } from "../../json/field-path.ts";
import { usageError } from "../usage-errors.ts";
import { parseText } from "../../json/parse.ts";

/** What a file holds: a JSON value, and the position of each part of it. */
export interface ParsedDocument {
  readonly value: unknown;
  /** The line of a part, from 1; of a missing part, that of what it would be in. */
  readonly lineOf: (path: FieldPath) => number;
  /** `shop.yaml:12` */
  readonly place: (path: FieldPath) => string;
}

/** A mistake in a file, with its place. */
export interface Problem {
  readonly place: string;
  /** The line of a mistake in the syntax, from 1. */
  readonly line?: number;
  readonly message: string;
}

/** Levels of a value: the limit of a payload, and what a file puts around it. */
const MAX_LEVELS = 100;
const TOO_DEEP = `is nested deeper than ${MAX_LEVELS} levels`;
const NOT_JSON = "must be a value that JSON has";

type Parsed = ParsedDocument | { readonly problem: Problem };

/**
 * Reads a YAML or JSON file. JSON goes by the rules of a request's body: no key twice, nothing behind its end.
 * @param name for messages
 * @returns the first mistake in its syntax, if there is one
 */
export function parseFile(name: string, bytes: Buffer): Parsed {
  const message = textFault(bytes);
  if (message !== undefined) return { problem: { place: name, message } };
  const text = bytes.toString("utf8");
  return isJsonText(name, text) ? parseJsonFile(name, bytes, text) : parseYamlFile(name, text);
}

function parseJsonFile(name: string, bytes: Uint8Array, text: string): Parsed {
  try {
    const value = parseJson(bytes);
    let source: ReturnType<typeof readYaml> | undefined;
    // Finding lines takes its time, and most files have no mistakes. JSON is a part of YAML.
    return documentOf(name, value, () => (source ??= readYaml(text)));
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    return { problem: placed(name, error.line, error.message) };
  }
}

function documentOf(name: string, value: unknown, source: () => ReturnType<typeof readYaml>): ParsedDocument {
  const lineOf = (path: FieldPath): number => lineAt(source(), path);
  return { value, lineOf, place: (path) => `${name}:${lineOf(path)}` };
}

function placed(name: string, line: number, message: string): Problem {
  return { place: `${name}:${line}`, line, message };
}

function parseYamlFile(name: string, text: string): Parsed {
  const source = readYaml(text, { merge: true });
  const { document, fault } = source;
  const refused = (line: number, message: string): Parsed => ({
    problem: placed(name, line, `this is not the YAML evreg reads: ${message}`),
  });
  if (fault !== undefined) return refused(fault.line, fault.message);
  try {
    const value: unknown = document.toJS({ maxAliasCount: MAX_ALIASES });
    const odd = notJson(value, []);
    if (odd !== undefined) {
      const message = odd.length > MAX_LEVELS ? TOO_DEEP : NOT_JSON;
      return { problem: placed(name, lineAt(source, odd), message) };
    }
    // Each its own copy of what an anchor stands for, and 0 for -0, as the service will have it.
    return documentOf(name, parseText(JSON.stringify(value)), () => source);
  } catch (error) {
    return refused(lineAt(source, []), error instanceof ReferenceError ? TOO_MANY_ALIASES : messageOf(error));
  }
}

/** The first part that is no JSON: `.nan`, `!!binary`, one too deep inside. */
function notJson(value: unknown, path: FieldPath): FieldPath | undefined {
  if (value === null || typeof value === "string" || typeof value === "boolean") return undefined;
  if (typeof value === "number") return Number.isFinite(value) ? undefined : path;
  if (typeof value !== "object" || path.length > MAX_LEVELS) return path;
  if (!Array.isArray(value) && Object.getPrototypeOf(value) !== Object.prototype) return path;
  for (const [step, inner] of Object.entries(value)) {
    const odd = notJson(inner, [...path, Array.isArray(value) ? Number(step) : step]);
    if (odd !== undefined) return odd;
  }
  return undefined;
}

/** The line of a part, from 1; of a missing part, that of what it would be in. */
function lineAt({ document, lines }: ReturnType<typeof readYaml>, path: FieldPath): number {
  let node: unknown = document.contents;
  let inner = node;
  for (const step of path) {
    if (isAlias(node)) node = node.resolve(document);
    if (isMap(node)) {
      const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(step));
      if (pair === undefined) break;
      inner = pair.key;
      node = pair.value;
    } else if (isSeq(node)) {
      node = node.items[Number(step)];
      if (node === undefined) break;
      inner = node;
    } else break;
  }
  return Math.max(1, lines.linePos(startOf(inner as Node | null)).line);
}

/** A file that declares, or one that such a file refers to. */
export interface RegistryFile {
  /** Where paths in it start. */
  readonly folder: string;
  /** It may refer to files in here only: the folder typed, or that of the file typed. */
  readonly within: string;
  readonly document: ParsedDocument;
}

const REGISTRY_FILE = /\.(?:ya?ml|json)$/i;
/** A file in a folder with such a name is a schema, and declares nothing. */
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
    if (names.length === 0) throw usageError(`There is no .yaml, .yml or .json file in ${start}.`);
    for (const name of names) {
      const folder = name === "-" ? process.cwd() : dirname(resolve(name));
      const within = isFolder ? await realpath(start) : await realpath(folder).catch(() => folder);
      const bytes = await readInput(name);
      const document = parseFile(name === "-" ? "stdin" : name, bytes);
      if ("problem" in document) problems.push(document.problem);
      else files.push({ folder, within, document });
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
  const paths: string[] = [];
  for (const entry of entries.toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(folder, entry.name);
    if (entry.name.startsWith(".") || entry.name === "node_modules") continue;
    if (entry.isDirectory()) paths.push(...(await filesIn(path)));
    else if (REGISTRY_FILE.test(entry.name) && !SCHEMA_FILE.test(entry.name) && !(await isDirectory(path)))
      paths.push(path);
  }
  return paths;
}

/**
 * A file that another refers to by `path`.
 * @param within the folder it must be in, links resolved
 * @throws `usage` for one elsewhere: whoever may write registry files must not have others' files read by them
 */
export async function referredFile(path: string, from: string, within: string): Promise<string> {
  const wanted = resolve(from, path);
  const real = await realpath(wanted).catch(() => undefined);
  if (real === undefined) throw usageError(`There is no file ${path} in ${from}.`);
  if (real !== within && !real.startsWith(within.endsWith(sep) ? within : within + sep)) {
    throw usageError(`${path} lies outside ${within}; a file may only refer to those in there.`);
  }
  return real;
}
