import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import { extname, join, resolve } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { Document, isScalar, visit } from "yaml";
import type { Action } from "../../domain/action.ts";
import { EvregError } from "../../domain/error.ts";
import { isReservedName } from "../../domain/names.ts";
import { SERVICE_APPLICATION } from "../../domain/service-events.ts";
import type { Evreg } from "../../evreg.ts";
import { systemReason, writeThrough } from "../io/files.ts";
import { note, writeOut } from "../io/output.ts";
import { escapeControlInJson, escapeControl } from "../io/text.ts";
import { makeFolder } from "../../runtime/files.ts";
import { usageError } from "../usage-errors.ts";
import { keyOf } from "./declarations.ts";
import { ACTION, NEW_RECORD_DEFAULTS, type DeclaredKind, SUBSCRIPTION, type Values } from "./members.ts";
import type { Registry } from "./plan.ts";

/** What files can declare, as a document that `apply` reads. */
export interface ExportedRegistry {
  readonly actions: readonly Values[];
  readonly subscriptions: readonly Values[];
}

/** @param application only what it owns, and its subscriptions */
export async function registryOf(evreg: Evreg, application?: string): Promise<Registry> {
  const query = application === undefined ? {} : { application };
  const [actions, subscriptions] = await Promise.all([
    evreg.actions.list(query),
    evreg.subscriptions.list(query),
  ]);
  return { actions: actions.data, subscriptions: subscriptions.data };
}

/**
 * The same registry always gives the same document: sorted, without rowids, times and secrets, and without members that
 * are as for a new record.
 */
export function exported({ actions, subscriptions }: Registry): ExportedRegistry {
  return {
    actions: recordsOf(ACTION, actions.filter(isDeclarable)),
    subscriptions: recordsOf(SUBSCRIPTION, subscriptions),
  };
}

/** One document for each application, by its name. */
export function groupByApplication({
  actions,
  subscriptions,
}: Registry): ReadonlyMap<string, ExportedRegistry> {
  const declarable = [...actions.filter(isDeclarable), ...subscriptions];
  const names = new Set(declarable.map(({ application }) => application));
  return new Map(
    [...names].toSorted().map((name) => {
      const own = {
        actions: actions.filter(({ application }) => application === name),
        subscriptions: subscriptions.filter(({ application }) => application === name),
      };
      return [name, exported(own)];
    }),
  );
}

/** The service's own actions are in every registry by themselves. */
function isDeclarable({ action, application }: Action): boolean {
  return application !== SERVICE_APPLICATION || !isReservedName(action);
}

function recordsOf(kind: DeclaredKind, records: Registry["actions"] | Registry["subscriptions"]): Values[] {
  return records
    .map((record): readonly [string, Values] => {
      const values = record as unknown as Values;
      return [keyOf(kind, values), declarationOf(kind, values)];
    })
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([, declaration]) => declaration);
}

function declarationOf({ identity, members }: DeclaredKind, values: Values): Values {
  const declaration: Record<string, unknown> = {};
  for (const name of identity) declaration[name] = values[name];
  for (const [name, defaultOf] of members) {
    const value = values[name];
    // A file that said `active: true` would undo each pause.
    const usual = Object.hasOwn(NEW_RECORD_DEFAULTS, name) ? NEW_RECORD_DEFAULTS[name] : defaultOf(values);
    const isUsual = isDeepStrictEqual(value, usual);
    if (!isUsual) declaration[name] = value;
  }
  return declaration;
}

export type ExportFormat = "yaml" | "json";

/** For others as far as the process gives them anything. */
const OPEN_FOLDER = 0o777;
/** Bytes of a file's name that every file system has room for, with the extension. */
const LONGEST_NAME = 200;

/** What acts on a terminal stands as its escape, which changes no value. */
export function exportText(registry: ExportedRegistry, format: ExportFormat): string {
  if (format === "json") return escapeControlInJson(`${JSON.stringify(registry, null, 2)}\n`);
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
      if (typeof value === "string" && escapeControlInJson(value) !== value) scalar.type = "QUOTE_DOUBLE";
    },
  });
  return escapeControlInJson(document.toString({ lineWidth: 0 }));
}

/** @throws `usage` naming what cannot be written */
async function writeExport(path: string, text: string): Promise<void> {
  await withWriteError(path, () => writeThrough(path, text));
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
  await withWriteError(folder, () => makeFolder(resolve(folder), OPEN_FOLDER));
  const files = exportFiles(registries, format);
  const there = await withWriteError(folder, () => readdir(folder));
  const before = new Map<string, string>();
  for (const name of there.filter((one) => files.has(one))) {
    const path = join(folder, name);
    before.set(name, await withWriteError(path, () => readFile(path, "utf8")));
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
    `${escapeControl(folder)} holds ${escapeControl(which)} with other contents. Nothing was written. Name another folder, or replace what differs with --force.`,
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

async function withWriteError<T>(path: string, act: () => T | Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    throw usageError(`${path} cannot be written (${systemReason(error)}).`);
  }
}

/** Where registry files go: into a folder, a file, or to stdout. */
export interface RegistryTarget {
  readonly "output-dir"?: string | undefined;
  readonly "output-file"?: string | undefined;
  readonly force?: boolean;
}

/**
 * Writes what `apply` reads, and says on stderr what it wrote.
 * @param byApplication the same, for a folder
 * @returns whether it is in files now
 */
export async function writeRegistry(
  whole: ExportedRegistry,
  byApplication: ReadonlyMap<string, ExportedRegistry>,
  format: ExportFormat,
  target: RegistryTarget,
): Promise<boolean> {
  const { "output-dir": folder, "output-file": path, force = false } = target;
  if (folder !== undefined) {
    const { written, unchanged, others } = await writeExports(folder, byApplication, { format, force });
    const unchangedNote = unchanged.length === 0 ? "" : `; ${unchanged.length} as they were`;
    const names = written.length === 0 ? "nothing" : written.join(", ");
    note(`Wrote ${escapeControl(names)} in ${escapeControl(folder)}${unchangedNote}.`);
    if (others.length > 0) {
      note(
        `${escapeControl(folder)} also holds ${escapeControl(others.join(", "))}, which evreg apply reads too.`,
      );
    }
    return true;
  }
  if (path === undefined || path === "-") await writeOut(exportText(whole, format));
  else await writeExport(path, exportText(whole, format));
  return path !== undefined && path !== "-";
}
