import type { ErrorObject } from "ajv";
import { pathOf, valueAt } from "./field-path.ts";
import type { FieldPath } from "./field-path.ts";
import { messageOf } from "./messages.ts";

export interface Fault {
  readonly path: FieldPath;
  readonly message: string;
  readonly value: unknown;
}

/** The fault Ajv found in a value, told as one place and one sentence part. */
export function faultOf(errors: readonly ErrorObject[], value: unknown): Fault {
  return faultIn(governingError(errors), value);
}

/** The first so many of the faults that Ajv found, where it was to look for all of them. */
export function faultsOf(errors: readonly ErrorObject[], value: unknown, most: number): readonly Fault[] {
  return governingErrors(errors)
    .slice(0, most)
    .map((error) => faultIn(error, value));
}

function faultIn(error: ErrorObject, value: unknown): Fault {
  const path = pathOf(error.instancePath, value);
  const property = propertyAtFault(error);
  if (property === undefined) {
    const found = valueAt(path, value);
    return { path, message: messageOf(error, found), value: found };
  }
  const inner = [...path, property];
  return { path: inner, message: messageOf(error, undefined), value: valueAt(inner, value) };
}

/**
 * The one error to tell of those Ajv leaves when it stops at the first that matters. The last is the keyword that failed;
 * those before it come from the branches of an `anyOf`, `oneOf` or `if`. Of several branches the one meant is most likely
 * the one that got deepest into the value, or the only one that did not fail at the type already.
 */
export function governingError(errors: readonly ErrorObject[]): ErrorObject {
  const last = errors.at(-1)!;
  if (last.keyword === "if") return errors.at(-2) ?? last;
  if (last.keyword !== "anyOf" && last.keyword !== "oneOf") return last;
  const branches = errors.slice(0, -1);
  const depth = Math.max(...branches.map(depthOf));
  if (depth > depthOf(last)) return branches.find((error) => depthOf(error) === depth)!;
  const others = branches.filter(({ keyword }) => keyword !== "type");
  if (others.length === 1) return others[0]!;
  if (branches.length === 0 || others.length > 0) return last;
  const types = new Set(branches.flatMap(({ params }) => (params as { type: string | string[] }).type));
  return { ...branches[0]!, params: { type: [...types] } };
}

/** The errors to tell of those Ajv leaves when it looks for all: one for each keyword that failed and is no branch's. */
export function governingErrors(errors: readonly ErrorObject[]): readonly ErrorObject[] {
  const governing: ErrorObject[] = [];
  for (const error of errors) {
    const branches = BRANCHES[error.keyword];
    if (branches === undefined) {
      governing.push(error);
      continue;
    }
    // They come right before it.
    const inside = branches.map((step) => `${error.schemaPath.slice(0, -error.keyword.length)}${step}/`);
    let first = governing.length;
    while (first > 0 && isWithin(governing[first - 1]!, error.instancePath, inside)) first -= 1;
    const failed = governing.splice(first);
    // Of an `if` all counts that the branch asks for which was taken.
    if (error.keyword === "if" && failed.length > 0) governing.push(...failed);
    else governing.push({ ...governingError([...failed, error]), schemaPath: error.schemaPath });
  }
  return governing;
}

const BRANCHES: Readonly<Record<string, readonly string[]>> = {
  anyOf: ["anyOf"],
  oneOf: ["oneOf"],
  propertyNames: ["propertyNames"],
  if: ["then", "else"],
};

function isWithin(error: ErrorObject, place: string, inside: readonly string[]): boolean {
  return error.instancePath.startsWith(place) && inside.some((path) => error.schemaPath.startsWith(path));
}

function depthOf(error: ErrorObject): number {
  return error.instancePath.split("/").length + (propertyAtFault(error) === undefined ? 0 : 1);
}

/** The property an error is about when that is not the value it was found at but one missing or too many in it. */
function propertyAtFault(error: ErrorObject): string | undefined {
  const params = error.params as Record<string, unknown>;
  const name =
    params["missingProperty"] ?? params["additionalProperty"] ?? params["propertyName"] ?? error.propertyName;
  return typeof name === "string" ? name : undefined;
}
