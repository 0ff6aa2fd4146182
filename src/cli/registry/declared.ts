import { EvregError } from "../../domain/error.ts";
import type { FieldPath } from "../../schema/field-path.ts";
import type { ParsedDocument, Problem } from "./document.ts";
import { referredFile, type RegistryFile } from "./files.ts";
import { ACTION, SUBSCRIPTION, unknownMember, type Declarable, type Values } from "./members.ts";
import { checkRecord, type Declared, type References } from "./record.ts";

export interface Declarations {
  readonly actions: readonly Declared[];
  readonly subscriptions: readonly Declared[];
  /** Mistakes; with any, nothing must be applied. */
  readonly problems: readonly Problem[];
}

/** Members at the top of a file that are for whoever writes it, such as anchors to be taken up below. */
const FOR_THE_WRITER = /^x-/;

/** All that the files declare, each record held to what the service takes, and none twice. */
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
  problems.push(...doubles(records));
  return {
    actions: records.filter(({ kind }) => kind === ACTION),
    subscriptions: records.filter(({ kind }) => kind === SUBSCRIPTION),
    problems,
  };
}

/** The name of a record for a person: `order.created`, `billing/invoices to order.created`. */
export function nameOf({ noun }: Pick<Declarable, "noun">, values: Values): string {
  if (noun === "action") return String(values["action"]);
  return `${String(values["application"])}/${String(values["subscription"])} to ${String(values["action"])}`;
}

/** What tells a record from all others of its noun. */
export function keyOf({ identity }: Declarable, values: Values): string {
  return JSON.stringify(identity.map((name) => values[name]));
}

interface Found {
  readonly kind: Declarable;
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
      if (!FOR_THE_WRITER.test(name))
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

function doubles(records: readonly Declared[]): Problem[] {
  const first = new Map<string, Declared>();
  const problems: Problem[] = [];
  for (const record of records) {
    const { kind, values, place } = record;
    // What it is cannot be told; that it must say so is told already.
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

/** Mistakes told at a time; who has more has mostly made the same one many times. */
const MOST_TOLD = 50;

/** The mistakes in one error. */
export function mistakes(problems: readonly Problem[]): EvregError {
  const lines = problems.slice(0, MOST_TOLD).map(({ place, message }) => `${place}: ${message}`);
  const count = problems.length.toLocaleString("en");
  if (problems.length > MOST_TOLD)
    lines.push(`and ${(problems.length - MOST_TOLD).toLocaleString("en")} more`);
  const [only = ""] = lines;
  const message = lines.length === 1 ? only : `The files have ${count} mistakes:\n  ${lines.join("\n  ")}`;
  return new EvregError("usage", `${message}\nNothing was changed.`);
}
