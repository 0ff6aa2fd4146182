import { EvregError, invalidField, messageOf } from "../../domain/error.ts";
import { checkBearerToken } from "../../domain/subscription.ts";
import type { Field } from "../../model/field.ts";
import { Unreadable } from "../../model/value-kinds.ts";
import { readInput } from "../io/input.ts";
import { firstOf } from "../io/text.ts";
import { type FieldPath, pathNamed } from "../../json/field-path.ts";
import {
  type ParsedDocument,
  parseFile,
  type Problem,
  readFiles,
  referredFile,
  type RegistryFile,
} from "./documents.ts";
import {
  ACTION,
  type DeclaredKind,
  checkMembers,
  memberNames,
  SUBSCRIPTION,
  unknownMember,
  type Values,
} from "./members.ts";

export interface Declarations {
  readonly actions: readonly Declared[];
  readonly subscriptions: readonly Declared[];
  /** Mistakes; with any, nothing must be applied. */
  readonly problems: readonly Problem[];
}

/** A record as a file declares it. */
export interface Declared {
  readonly kind: DeclaredKind;
  /** The members that were given, as the service will have them. */
  readonly values: Values;
  /** What `bearer_token_file` holds. It is sent, and never shown. */
  readonly bearerToken?: string;
  /** The position of a part of it: `shop.yaml:12`. */
  readonly place: (path: FieldPath) => string;
}

/**
 * What the files at these paths declare.
 * @throws `usage` with every mistake and its place
 */
export async function loadDeclarations(paths: readonly string[]): Promise<Declarations> {
  const { files, problems } = await readFiles(paths);
  const declared = await readDeclarations(files);
  const all = [...problems, ...declared.problems];
  if (all.length > 0) throw problemsError(all);
  return declared;
}

/** All that the files declare. Each record is checked up to its first mistake, and none may occur twice. */
export async function readDeclarations(files: readonly RegistryFile[]): Promise<Declarations> {
  const problems: Problem[] = [];
  const records: Declared[] = [];
  for (const raw of files.flatMap((file) => recordsIn(file, problems))) {
    const record = await checkRecord(raw, problems);
    if (record !== undefined) records.push(record);
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

interface RawRecord {
  readonly kind: DeclaredKind;
  readonly value: unknown;
  readonly place: (path: FieldPath) => string;
  readonly file: RegistryFile;
}

/** Members at the top of a file that are for its author, such as anchors used below. */
const IGNORED_MEMBER = /^x-/;

function recordsIn(file: RegistryFile, problems: Problem[]): RawRecord[] {
  const records: RawRecord[] = [];
  const { value, place } = file.document;
  // An empty file.
  if (value === null) return [];
  if (typeof value !== "object" || Array.isArray(value)) {
    problems.push({
      place: place([]),
      message: "must be a mapping with the lists actions and subscriptions",
    });
    return [];
  }
  for (const [name, list] of Object.entries(value)) {
    const kind = [ACTION, SUBSCRIPTION].find((one) => one.list === name);
    if (kind === undefined) {
      if (!IGNORED_MEMBER.test(name))
        problems.push({ place: place([name]), message: unknownMember(name, ["actions", "subscriptions"]) });
    } else if (Array.isArray(list)) {
      for (const [index, item] of (list as unknown[]).entries()) {
        records.push({ kind, value: item, place: (path) => place([name, index, ...path]), file });
      }
    } else if (list !== null) {
      problems.push({ place: place([name]), message: `${name} must be a list` });
    }
  }
  return records;
}

function duplicates(records: readonly Declared[]): Problem[] {
  const first = new Map<string, Declared>();
  const problems: Problem[] = [];
  for (const record of records) {
    const { kind, values, place } = record;
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
  const all = problems.map(({ place, message }) => `${place}: ${message}`);
  const listed = firstOf(all, MAX_PROBLEMS).join("\n  ");
  const count = all.length.toLocaleString("en");
  const message = all.length === 1 ? listed : `The files have ${count} mistakes:\n  ${listed}`;
  return new EvregError("usage", `${message}\nNothing was changed.`);
}

/**
 * Checks one record by the rules of the service, so that a mistake is found before anything is changed. What only the
 * service knows, such as the networks that handlers may be in, is left to it.
 * @returns `undefined` for one with a mistake; the first one is among the problems
 */
async function checkRecord(
  { kind, value, place, file }: RawRecord,
  problems: Problem[],
): Promise<Declared | undefined> {
  let placeOf = place;
  try {
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
      throw misplaced(place([]), `must be a mapping, which declares one ${kind.noun}`);
    }
    const values: Record<string, unknown> = { ...value };
    const known = memberNames(kind);
    const unknown = Object.keys(values).find((name) => !known.includes(name));
    if (unknown !== undefined) throw misplaced(place([unknown]), unknownMessage(unknown, known));
    const { schemata } = values;
    if (typeof schemata === "string") {
      const schema = await schemaIn(schemata, file);
      values["schemata"] = schema.value;
      // Places inside the schema are those of its own file.
      placeOf = (inside) => (inside[0] === "schemata" ? schema.place(inside.slice(1)) : place(inside));
    }
    const bearerToken = await bearerTokenOf(values, file);
    delete values["bearer_token_file"];
    for (const [member, field] of Object.entries(kind.fields)) readText(values, member, field);
    checkMembers(kind, values);
    return { kind, values, place: placeOf, ...(bearerToken === undefined ? {} : { bearerToken }) };
  } catch (error) {
    problems.push(problemOf(error, placeOf));
    return undefined;
  }
}

function misplaced(place: string, message: string): EvregError {
  return new EvregError("invalid", message, { place });
}

function unknownMessage(name: string, known: readonly string[]): string {
  if (name !== "bearer_token") return unknownMember(name, known);
  return "bearer_token must not stand in a file; put the value into one of its own and name that as bearer_token_file";
}

/**
 * Turns a text that stands for a value into it, as the flags do: `30s` into milliseconds.
 * @throws `invalid` for another text
 */
function readText(values: Record<string, unknown>, member: string, { kind, new: schema = {} }: Field): void {
  const value = values[member];
  if (value === undefined || kind?.inFile === undefined) return;
  try {
    values[member] = kind.inFile(value, schema);
  } catch (error) {
    if (!(error instanceof Unreadable)) throw error;
    throw invalidField(`${member}${error.place}`, error.message, value);
  }
}

/** What a check refuses, at its place. */
export function problemOf(error: unknown, placeOf: Declared["place"]): Problem {
  if (!(error instanceof EvregError)) throw error;
  const { field, place } = error.details;
  const path = typeof field === "string" ? pathNamed(field) : [];
  return { place: typeof place === "string" ? place : placeOf(path), message: error.message };
}

async function schemaIn(path: string, { folder, within }: RegistryFile): Promise<ParsedDocument> {
  const bytes = await inField("schemata", async () => readInput(await referredFile(path, folder, within)));
  const document = parseFile(path, bytes);
  // Its place is in another file than the record.
  if ("problem" in document) throw misplaced(document.problem.place, document.problem.message);
  return document;
}

async function bearerTokenOf(
  values: Record<string, unknown>,
  { folder, within }: RegistryFile,
): Promise<string | undefined> {
  const path = values["bearer_token_file"];
  if (path === undefined) return undefined;
  if (typeof path !== "string") throw invalidField("bearer_token_file", "must be the path of a file");
  if ((values["bearer"] ?? "own") !== "own") {
    throw invalidField("bearer", "must be own, or be left out, with a bearer_token_file");
  }
  values["bearer"] = "own";
  return inField("bearer_token_file", async () => {
    const bytes = await readInput(await referredFile(path, folder, within));
    return checkBearerToken("bearer_token_file", bytes.toString("utf8").trim());
  });
}

/** Reports what the system refuses, or a mistake in a path, as a mistake in the member that led to it. */
async function inField<T>(field: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof EvregError && error.code !== "usage") throw error;
    throw invalidField(field, messageOf(error));
  }
}
