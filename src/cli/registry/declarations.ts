import { realpath } from "node:fs/promises";
import { nearest } from "../../config/values.ts";
import { EvregError, invalidField, messageOf } from "../../domain/error.ts";
import { parseDurationMs } from "../../domain/formats.ts";
import { checkBearerToken } from "../../domain/subscription.ts";
import { readRegularFile } from "../io/input.ts";
import { type FieldPath, pathNamed } from "../../schema/pointers.ts";
import { usageError } from "../usage-errors.ts";
import {
  type ParsedDocument,
  parseDocuments,
  type Problem,
  readFiles,
  referredFile,
  type RegistryFile,
} from "./documents.ts";
import {
  ACTION,
  type DeclaredKind,
  validateMembers,
  memberNames,
  SUBSCRIPTION,
  unknownMember,
  type Values,
} from "./members.ts";

/**
 * What the files at these paths declare.
 * @throws `usage` with every mistake and its place
 */
export async function loadDeclarations(
  paths: readonly string[],
  bearerTokenDir: string | undefined,
): Promise<Declarations> {
  const { files, problems } = await readFiles(paths);
  const references =
    bearerTokenDir === undefined ? {} : { bearerTokenFolder: await folderOf(bearerTokenDir) };
  const declared = await readDeclarations(files, references);
  const all = [...problems, ...declared.problems];
  if (all.length > 0) throw problemsError(all);
  return declared;
}

async function folderOf(path: string): Promise<string> {
  return realpath(path).catch(() => {
    throw usageError(`--bearer-token-dir: there is no folder ${path}.`);
  });
}

export interface Declarations {
  readonly actions: readonly Declared[];
  readonly subscriptions: readonly Declared[];
  /** Mistakes; with any, nothing must be applied. */
  readonly problems: readonly Problem[];
}

/** Members at the top of a file that are for its author, such as anchors used below. */
const IGNORED_MEMBER = /^x-/;

/** All that the files declare. Each record is checked by the rules of the service, and none may occur twice. */
export async function readDeclarations(
  files: readonly RegistryFile[],
  references: References,
): Promise<Declarations> {
  const problems: Problem[] = [];
  const records: Declared[] = [];
  const schemas = await schemaFiles(files);
  for (const file of files) {
    if (schemas.has(file.path)) continue;
    for (const document of file.documents) {
      for (const { kind, index, value } of recordsIn(document, problems)) {
        const place = (path: FieldPath): string => document.place([kind.list, index, ...path]);
        const found = await checkRecord({ kind, value, place, file }, references);
        problems.push(...found.problems);
        if (found.record !== undefined) records.push(found.record);
      }
    }
  }
  problems.push(...duplicates(records));
  return {
    actions: records.filter(({ kind }) => kind === ACTION),
    subscriptions: records.filter(({ kind }) => kind === SUBSCRIPTION),
    problems,
  };
}

/** The name of a record for a person: `order.created`, `billing/invoices to order.created`. */
export function nameOf({ noun }: Pick<DeclaredKind, "noun">, values: Values): string {
  if (noun === "action") return String(values["action"]);
  return `${String(values["application"])}/${String(values["subscription"])} to ${String(values["action"])}`;
}

/** The key of a record among those of its noun. */
export function keyOf({ identity }: DeclaredKind, values: Values): string {
  return JSON.stringify(identity.map((name) => values[name]));
}

interface Found {
  readonly kind: DeclaredKind;
  readonly index: number;
  readonly value: unknown;
}

function recordsIn(document: ParsedDocument, problems: Problem[]): Found[] {
  const { value, place } = document;
  // An empty document of YAML.
  if (value === null) return [];
  if (typeof value !== "object" || Array.isArray(value)) {
    problems.push({
      place: place([]),
      message: "must be a mapping with the lists actions and subscriptions",
    });
    return [];
  }
  const found: Found[] = [];
  for (const [name, list] of Object.entries(value)) {
    const kind = [ACTION, SUBSCRIPTION].find((one) => one.list === name);
    if (kind === undefined) {
      if (!IGNORED_MEMBER.test(name))
        problems.push({ place: place([name]), message: unknownMember(name, ["actions", "subscriptions"]) });
    } else if (Array.isArray(list)) {
      found.push(...list.map((item: unknown, index) => ({ kind, index, value: item })));
    } else if (list !== null) {
      problems.push({ place: place([name]), message: `${name} must be a list` });
    }
  }
  return found;
}

/** Files that are the schema of an action of another file, and so declare nothing themselves. */
async function schemaFiles(files: readonly RegistryFile[]): Promise<ReadonlySet<string>> {
  const paths = new Set<string>();
  for (const { documents, folder, within } of files) {
    for (const { value } of documents) {
      for (const action of actionsOf(value)) {
        const schemata = (action as { schemata?: unknown } | null)?.schemata;
        if (typeof schemata !== "string") continue;
        const path = await referredFile(schemata, folder, within).catch(() => undefined);
        if (path !== undefined) paths.add(path);
      }
    }
  }
  return paths;
}

function actionsOf(value: unknown): readonly unknown[] {
  const list = (value as { actions?: unknown } | null)?.actions;
  return Array.isArray(list) ? (list as unknown[]) : [];
}

function duplicates(records: readonly Declared[]): Problem[] {
  const first = new Map<string, Declared>();
  const problems: Problem[] = [];
  for (const record of records) {
    const { kind, values, place } = record;
    // It has no key; the missing member is reported already.
    if (kind.identity.some((name) => typeof values[name] !== "string")) continue;
    const key = kind.noun + keyOf(kind, values);
    const before = first.get(key);
    if (before === undefined) first.set(key, record);
    else {
      const message = `the ${kind.noun} ${nameOf(kind, values)} is declared already, at ${before.place([])}`;
      problems.push({ place: place([]), message });
    }
  }
  return problems;
}

/** Mistakes in one message; further ones are mostly the same one again. */
const MAX_PROBLEMS = 50;

/** The mistakes in one error. */
export function problemsError(problems: readonly Problem[]): EvregError {
  const lines = problems.slice(0, MAX_PROBLEMS).map(({ place, message }) => `${place}: ${message}`);
  const count = problems.length.toLocaleString("en");
  if (problems.length > MAX_PROBLEMS)
    lines.push(`and ${(problems.length - MAX_PROBLEMS).toLocaleString("en")} more`);
  const [only = ""] = lines;
  const message = lines.length === 1 ? only : `The files have ${count} mistakes:\n  ${lines.join("\n  ")}`;
  return new EvregError("usage", `${message}\nNothing was changed.`);
}

/** A record as a file declares it. */
export interface Declared {
  readonly kind: DeclaredKind;
  /** The members that were given, as the service will have them. */
  readonly values: Values;
  /** What `bearer_token_file` holds. It is sent, and never shown. */
  readonly bearerToken?: string;
  /** Where a part of it stands: `shop.yaml:12`. */
  readonly place: (path: FieldPath) => string;
}

/** Where the files lie that hold what a registry file must not. */
export interface References {
  /** Of `bearer_token_file`; by default they lie where schemas do. */
  readonly bearerTokenFolder?: string;
}

interface Raw {
  readonly kind: DeclaredKind;
  readonly value: unknown;
  readonly place: (path: FieldPath) => string;
  readonly file: RegistryFile;
}

/** A record as far as it could be read. It may be applied only if there are no `problems`. */
interface CheckedRecord {
  /** `undefined` for what is no mapping. */
  readonly record?: Declared;
  readonly problems: readonly Problem[];
}

/**
 * Holds one record to what the service takes, so that a mistake is found before anything is changed. What only the service
 * knows, such as the networks that handlers may be in, is left to it.
 */
async function checkRecord(raw: Raw, references: References): Promise<CheckedRecord> {
  const { kind, value, place, file } = raw;
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    return {
      problems: [{ place: place([]), message: `must be a mapping, which declares one ${kind.noun}` }],
    };
  }
  const known = memberNames(kind);
  const problems = unknownMembers(raw, value);
  // Without the members that are not known, so that those do not hide the mistakes in the others.
  const values = Object.fromEntries<unknown>(Object.entries(value).filter(([name]) => known.includes(name)));
  let placeOf = place;
  let bearerToken: string | undefined;
  const trying = async (act: () => unknown): Promise<void> => {
    try {
      await act();
    } catch (error) {
      problems.push(problemOf(error, placeOf));
    }
  };
  // A member that could not be read is left out below, which would only report it again.
  await trying(async () => {
    const path = values["schemata"];
    if (typeof path !== "string") return;
    values["schemata"] = {};
    const schema = await schemaIn(path, file);
    values["schemata"] = schema.value;
    // Places inside the schema are those of its own file.
    placeOf = (inside) => (inside[0] === "schemata" ? schema.place(inside.slice(1)) : place(inside));
  });
  await trying(async () => {
    bearerToken = await bearerTokenOf(values, file, references);
  });
  delete values["bearer_token_file"];
  for (const member of ["timeout_ms", "retry_schedule"]) await trying(() => readDurations(values, member));
  const meant = new Set(Object.keys(value).map((name) => nearest(name, known)));
  problems.push(...validateMembers(kind, values, meant).map((error) => problemOf(error, placeOf)));
  const record = { kind, values, place: placeOf };
  return { record: bearerToken === undefined ? record : { ...record, bearerToken }, problems };
}

/**
 * Times as they are typed on the command line, such as `30s`, become milliseconds.
 * @throws `invalid`; what is none is then left out of `values`
 */
function readDurations(values: Record<string, unknown>, member: string): void {
  const value = values[member];
  if (value === undefined) return;
  const read = (one: unknown, field: string): unknown => {
    const ms = typeof one === "string" ? parseDurationMs(one) : undefined;
    if (typeof one !== "string" || ms !== undefined) return ms ?? one;
    delete values[member];
    const message = `must be a time such as 500ms, 30s or 2h, or a number of milliseconds; not ${JSON.stringify(one)}`;
    throw invalidField(field, message, one);
  };
  const isList = member === "retry_schedule" && Array.isArray(value);
  values[member] = isList ? value.map((one, index) => read(one, `${member}[${index}]`)) : read(value, member);
}

function problemOf(error: unknown, place: Declared["place"]): Problem {
  if (!(error instanceof EvregError)) throw error;
  const field = error.details["field"];
  const path = typeof field === "string" ? pathNamed(field) : [];
  const known = error instanceof PlacedError ? error.place : undefined;
  return { place: known ?? place(path), message: error.message };
}

/** Where its own place is another file than that of the record. */
class PlacedError extends EvregError {
  readonly place: string;

  constructor(place: string, message: string) {
    super("invalid", message);
    this.place = place;
  }
}

function unknownMembers({ kind, place }: Raw, value: object): Problem[] {
  const known = memberNames(kind);
  return Object.keys(value)
    .filter((name) => !known.includes(name))
    .map((name) => ({
      place: place([name]),
      message:
        name === "bearer_token"
          ? "bearer_token must not stand in a file; put the value into one of its own and name that as bearer_token_file"
          : unknownMember(name, known),
    }));
}

async function schemaIn(
  path: string,
  { folder, within }: RegistryFile,
): Promise<{ value: unknown; place: (path: FieldPath) => string }> {
  const real = await inField("schemata", () => referredFile(path, folder, within));
  const bytes = await inField("schemata", () => readRegularFile(real));
  const { documents, problems } = parseDocuments(path, bytes);
  const [slip] = problems;
  if (slip !== undefined) throw new PlacedError(slip.place, slip.message);
  const [document, more] = documents;
  if (document === undefined || more !== undefined) {
    throw new PlacedError(path, 'holds no schema: a JSON Schema is one object such as {"type": "object"}');
  }
  return document;
}

async function bearerTokenOf(
  values: Record<string, unknown>,
  { folder, within }: RegistryFile,
  { bearerTokenFolder: own }: References,
): Promise<string | undefined> {
  const path = values["bearer_token_file"];
  if (path === undefined) return undefined;
  if (typeof path !== "string") throw invalidField("bearer_token_file", "must be the path of a file");
  if ((values["bearer"] ?? "own") !== "own") {
    throw invalidField("bearer", "must be own, or be left out, with a bearer_token_file");
  }
  delete values["bearer_token_file"];
  values["bearer"] = "own";
  return inField("bearer_token_file", async () => {
    const real = await referredFile(path, own ?? folder, own ?? within);
    const token = Buffer.from(await readRegularFile(real)).toString("utf8");
    return checkBearerToken("bearer_token_file", token.trim());
  });
}

/** A failure of the system's, or a mistake in a path, as one of the member that led to it. */
async function inField<T>(field: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof EvregError && error.code !== "usage") throw error;
    throw invalidField(field, messageOf(error));
  }
}
