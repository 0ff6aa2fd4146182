import { existsSync } from "node:fs";
import type { Schemata } from "../domain/action.ts";
import { EvregError } from "../domain/error.ts";
import { encodeJson } from "../json/raw-json.ts";
import { pathNamed, pointerSteps, pointerTo } from "../json/field-path.ts";
import { readInput } from "./io/input.ts";
import { MEMBER_SEARCH_FORM, memberSearch } from "../domain/words/member-search.ts";
import { usageError } from "./usage-errors.ts";

/**
 * A schema that is typed, which begins with a brace, or is in a file, JSON or YAML; `-` is stdin. What a schema may hold is
 * checked by the service.
 * @param flag that it is the value of
 */
export async function readSchema(typed: string, flag = "--schema"): Promise<Schemata> {
  return (await readSchemaSource(typed, flag)).schemata;
}

/** Reads a schema, with a way to find on which line of the file a JSON pointer leads. */
export async function readSchemaSource(
  typed: string,
  flag = "--schema",
): Promise<{
  /** As messages call what was read. */
  readonly name: string;
  readonly schemata: Schemata;
  readonly lineOf: (pointer: string) => number;
}> {
  // YAML takes its time to load.
  const { parseFile } = await import("./registry/documents.ts");
  const name = nameOf(typed, flag);
  const document = parseFile(name, isItself(typed) ? Buffer.from(typed) : await readInput(typed));
  if ("problem" in document) {
    const { place, line, message } = document.problem;
    throw new EvregError(isItself(typed) ? "usage" : "malformed", `${place}: ${message}`, { line });
  }
  const { value, lineOf } = document;
  return { name, schemata: schemataOf(name, value), lineOf: (pointer) => lineOf(pointerSteps(pointer)) };
}

/** @param name of the file, or of the flag whose value holds it */
export function schemataOf(name: string, value: unknown): Schemata {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Schemata;
  const form = 'a JSON Schema is an object such as {"type": "object"}';
  throw new EvregError("invalid", `${name} holds no schema: ${form}.`);
}

/**
 * What is wrong with a schema, at its place in what was typed or read, written as in warnings and breaks.
 * @param field the place as the API names it
 */
export function faultInSchema(typed: string, flag: string, field: string, message: string): string {
  const pointer = pathNamed(field).slice(1).reduce<string>(pointerTo, "");
  return `${nameOf(typed, flag)}: ${pointer === "" ? "" : `${pointer}: `}${message}`;
}

export function isItself(typed: string): boolean {
  return typed.trimStart().startsWith("{");
}

function nameOf(typed: string, flag: string): string {
  if (isItself(typed)) return flag;
  return typed === "-" ? "stdin" : typed;
}

const FORMS =
  'takes a file with a JSON Schema (- for stdin), the schema itself such as \'{"required": ["id"]}\', or MEMBER=VALUE such as country=FR, which may be repeated';

/**
 * The JSON Schema, as JSON, that a flag chooses events by.
 * @param flag of which it is the value, such as `--where`
 * @param typed a file, JSON that begins with a brace, or any number of `MEMBER=VALUE`, which all must be so
 * @throws `usage` for anything else
 */
export async function whereSchema(flag: string, typed: readonly string[]): Promise<string> {
  if (typed.every(isMember)) {
    const schema = memberSearch(typed);
    if (schema !== undefined) return schema;
    throw usageError(
      `${flag}: ${MEMBER_SEARCH_FORM}; not ${typed.map((one) => JSON.stringify(one)).join(" ")}.`,
    );
  }
  const [only = "", ...others] = typed;
  if (others.length > 0) {
    throw usageError(
      `${flag}: takes one JSON Schema, or only MEMBER=VALUE where it is given more than once.`,
    );
  }
  if (only !== "-" && !isItself(only) && !existsSync(only)) {
    throw usageError(`${flag}: ${FORMS}. There is no file ${JSON.stringify(only)}.`);
  }
  return encodeJson(await readSchema(only, flag));
}

function isMember(text: string): boolean {
  return !isItself(text) && text.includes("=") && !existsSync(text);
}
