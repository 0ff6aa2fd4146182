import { existsSync } from "node:fs";
import { encodeJson, parseJson } from "../json/raw-json.ts";
import { messageOf } from "../domain/error.ts";
import { type OwnMember, ownMember, setMembers } from "./own-members.ts";
import { readSchema } from "./schema-file.ts";
import { usageError } from "./usage-errors.ts";

const FORMS =
  'takes a file with a JSON Schema (- for stdin), the schema itself such as \'{"required": ["id"]}\', or MEMBER=VALUE such as country=FR, which may be repeated';

/**
 * The JSON Schema, as JSON, that a flag chooses events by.
 * @param flag of which it is the value, such as `--where`
 * @param typed a file, JSON that begins with a brace, or any number of `MEMBER=VALUE`, which all must be so
 * @throws `usage` for anything else
 */
export async function whereSchema(flag: string, typed: readonly string[]): Promise<string> {
  const members = typed.map(memberIn);
  const own = members.filter((member) => member !== undefined);
  if (own.length === typed.length) return encodeJson(schemaOf(exampleOf(flag, own, typed)));
  const [only = "", ...others] = typed;
  if (others.length > 0) {
    throw usageError(
      `${flag}: takes one JSON Schema, or only MEMBER=VALUE where it is given more than once.`,
    );
  }
  if (only.trimStart().startsWith("{")) return inlineSchema(flag, only);
  if (only !== "-" && !existsSync(only)) {
    throw usageError(`${flag}: ${FORMS}. There is no file ${JSON.stringify(only)}.`);
  }
  return encodeJson(await readSchema(only, "filter"));
}

function memberIn(text: string): OwnMember | undefined {
  if (text.trimStart().startsWith("{") || !text.includes("=") || existsSync(text)) return undefined;
  return ownMember(text);
}

function inlineSchema(flag: string, text: string): string {
  try {
    parseJson(Buffer.from(text));
    return text;
  } catch (error) {
    throw usageError(`${flag}: is no JSON: ${messageOf(error)}`);
  }
}

/** A payload that holds these members and nothing else, with their values as they were typed. */
function exampleOf(flag: string, members: readonly OwnMember[], typed: readonly string[]): object {
  const places = members.map(({ path }) => JSON.stringify(path));
  const twice = places.findIndex((place, at) => places.indexOf(place) !== at);
  if (twice !== -1)
    throw usageError(`${flag}: names ${typed[twice]!.replace(/=.*$/s, "")} twice; give it once.`);
  const example = {};
  if (setMembers(example, members, true)) return example;
  throw usageError(`${flag}: of a list, name the items before an item as well, or give a JSON Schema.`);
}

/** What a payload must be to hold all that this one does. */
function schemaOf(value: unknown): object {
  if (Array.isArray(value)) return { type: "array", items: value.map(schemaOf), minItems: value.length };
  if (!isPlain(value)) return { const: value };
  const members = Object.entries(value);
  const properties = Object.fromEntries(members.map(([name, member]) => [name, schemaOf(member)]));
  return { type: "object", properties, required: Object.keys(value) };
}

/** Made by `setMembers` on the way to a member; a value that was typed is raw. */
function isPlain(value: unknown): value is object {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}
