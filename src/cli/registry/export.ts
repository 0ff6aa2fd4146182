import { lstatSync } from "node:fs";
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
import { isOfListener } from "../listen/subscriptions.ts";
import { usageError } from "../usage-errors.ts";
import { keyOf } from "./declarations.ts";
import { ACTION, NEW_RECORD_DEFAULTS, type DeclaredKind, SUBSCRIPTION, type Values } from "./members.ts";
import type { Registry } from "./plan.ts";

/** What files can declare, as a document that `apply` reads. */
export interface ExportedRegistry {
  readonly actions: readonly Values[];
  readonly subscriptions: readonly Values[];
}

/**
 * All but the subscriptions of `evreg listen`, which end by themselves.
 * @param application only what it owns, and its subscriptions
 */
export async function registryOf(evreg: Evreg, application?: string): Promise<Registry> {
  const query = application === undefined ? {} : { application };
  const [actions, subscriptions, identity] = await Promise.all([
    evreg.actions.list(query),
    evreg.subscriptions.list(query),
    evreg.whoami(),
  ]);
  return {
    actions: actions.data,
    subscriptions: subscriptions.data.filter((one) => !isOfListener(one)),
    retries: identity.data.retries,
  };
}

/** The same registry always gives the same document: sorted, without rowids, times, secrets and default values. */
export function exported({ actions, subscriptions, retries }: Registry): ExportedRegistry {
  return {
    actions: recordsOf(ACTION, actions.filter(isDeclarable), retries),
    subscriptions: recordsOf(SUBSCRIPTION, subscriptions, retries),
  };
}

/** One document for each application, by its name. */
export function groupByApplication({
  actions,
  subscriptions,
  retries,
}: Registry): ReadonlyMap<string, ExportedRegistry> {
  const declarable = [...actions.filter(isDeclarable), ...subscriptions];
  const names = new Set(declarable.map(({ application }) => application));
  return new Map(
    [...names].toSorted().map((name) => {
      const own = {
        actions: actions.filter(({ application }) => application === name),
        subscriptions: subscriptions.filter(({ application }) => application === name),
        retries,
      };
      return [name, exported(own)];
    }),
  );
}

/** Every registry has the service's own actions. */
function isDeclarable({ action, application }: Action): boolean {
  return application !== SERVICE_APPLICATION || !isReservedName(action);
}

function recordsOf(
  kind: DeclaredKind,
  records: Registry["actions"] | Registry["subscriptions"],
  retries: Registry["retries"],
): Values[] {
  return (records as unknown as readonly Values[])
    .toSorted((a, b) => (keyOf(kind, a) < keyOf(kind, b) ? -1 : 1))
    .map((record) => declarationOf(kind, record, retries));
}

function declarationOf(
  { identity, members }: DeclaredKind,
  values: Values,
  retries: Registry["retries"],
): Values {
  const declaration: Record<string, unknown> = {};
  for (const name of identity) declaration[name] = values[name];
  for (const [name, defaultOf] of members) {
    // A file that said `active: true` would undo each pause.
    const usual = Object.hasOwn(NEW_RECORD_DEFAULTS, name)
      ? NEW_RECORD_DEFAULTS[name]
      : defaultOf(values, retries);
    if (!isDeepStrictEqual(values[name], usual)) declaration[name] = values[name];
  }
  return declaration;
}

export type ExportFormat = "yaml" | "json";

/** Others may read it as far as the umask lets them. */
const FOLDER_MODE = 0o777;

/** Characters that act on a terminal are escaped, which changes no value. */
export function exportText(registry: ExportedRegistry, format: ExportFormat): string {
  if (format === "json") return escapeControlInJson(`${JSON.stringify(registry, null, 2)}\n`);
  // No anchors for equal parts, and no line breaks inside of texts.
  const document = new Document(registry, { aliasDuplicateObjects: false });
  visit(document, {
    Pair(_, { key }) {
      // Unquoted, a member of this name would be merged.
      if (isScalar(key) && key.value === "<<") key.type = "QUOTE_DOUBLE";
    },
    Scalar(_, scalar) {
      const { value } = scalar;
      // YAML has the escapes of JSON only between these.
      if (typeof value === "string" && escapeControlInJson(value) !== value) scalar.type = "QUOTE_DOUBLE";
    },
  });
  return escapeControlInJson(document.toString({ lineWidth: 0 }));
}

/** Names of files in the folder. */
export interface WrittenExports {
  readonly written: readonly string[];
  /** They had the same contents already. */
  readonly unchanged: readonly string[];
  /** What `apply` would read as well, and this export did not write. */
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
  await withWriteError(folder, () => makeFolder(resolve(folder), FOLDER_MODE));
  const files = exportFiles(registries, format);
  const existing = await withWriteError(folder, () => readdir(folder));
  for (const name of files.keys()) await withWriteError(name, () => mustBeRegular(join(folder, name)));
  const written: string[] = [];
  const unchanged: string[] = [];
  for (const [name, text] of files) {
    const path = join(folder, name);
    const isThere = existing.includes(name);
    const before = isThere ? await withWriteError(path, () => readFile(path, "utf8")) : undefined;
    (before === text ? unchanged : written).push(name);
  }
  const edited = written.filter((name) => existing.includes(name)).toSorted();
  if (edited.length > 0 && !force) {
    const which = edited.length === 1 ? edited[0]! : `${edited[0]} and ${edited.length - 1} more`;
    throw new EvregError(
      "conflict",
      `${escapeControl(folder)} holds ${escapeControl(which)} with other contents. Nothing was written. Name another folder, or replace what differs with --force.`,
    );
  }
  for (const name of written) await writeText(join(folder, name), files.get(name)!);
  const others = existing.filter((name) => /^\.(?:ya?ml|json)$/i.test(extname(name)) && !files.has(name));
  return { written, unchanged, others: others.toSorted() };
}

/** A link in a folder that others write to could lead to any file of this user. @throws EvregError `conflict` */
function mustBeRegular(path: string): void {
  const existing = lstatSync(path, { throwIfNoEntry: false });
  if (existing === undefined || existing.isFile()) return;
  const what = existing.isSymbolicLink() ? "a link" : "no regular file";
  throw new EvregError(
    "conflict",
    `${escapeControl(path)} is ${what}, and is not written through. Nothing was written. Remove it, or name another folder.`,
  );
}

/** @throws `usage` naming what cannot be written */
async function writeText(path: string, text: string): Promise<void> {
  await withWriteError(path, () => writeThrough(path, text));
}

/** The text of each file, by its name. */
function exportFiles(
  registries: ReadonlyMap<string, ExportedRegistry>,
  format: ExportFormat,
): ReadonlyMap<string, string> {
  const files = new Map<string, string>();
  // Some disks take names that differ in case alone for the same.
  const taken = new Set<string>();
  for (const [application, registry] of registries) {
    const own = fileStem(application);
    let stem = own;
    for (let count = 2; taken.has(stem.toLowerCase()); count += 1) stem = `${own}-${count}`;
    taken.add(stem.toLowerCase());
    files.set(`${stem}.${format}`, exportText(registry, format));
  }
  return files;
}

/** An application's name is any text. What could be a path, a hidden file or a schema's becomes `%2F`. */
function fileStem(application: string): string {
  return application
    .replace(/[^A-Za-z0-9._-]/gu, (character) => encodeURIComponent(character))
    .replace(/^\.|\.(?=schema$)/gi, "%2E");
}

async function withWriteError<T>(path: string, act: () => T | Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof EvregError) throw error;
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
 * @returns whether it wrote files
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
    const rest = unchanged.length === 0 ? "" : `; ${unchanged.length} unchanged`;
    note(`Wrote ${escapeControl(written.join(", ") || "nothing")} in ${escapeControl(folder)}${rest}.`);
    if (others.length > 0) {
      note(
        `${escapeControl(folder)} also holds ${escapeControl(others.join(", "))}, which evreg apply reads too.`,
      );
    }
    return true;
  }
  if (path === undefined || path === "-") await writeOut(exportText(whole, format));
  else await writeText(path, exportText(whole, format));
  return path !== undefined && path !== "-";
}
