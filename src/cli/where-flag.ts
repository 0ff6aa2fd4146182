import { existsSync } from "node:fs";
import { encodeJson, parseJson } from "../json/raw-json.ts";
import { messageOf } from "../domain/error.ts";
import { MEMBER_SEARCH_FORM, memberSearch } from "../domain/words/member-search.ts";
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
  if (only.trimStart().startsWith("{")) return inlineSchema(flag, only);
  if (only !== "-" && !existsSync(only)) {
    throw usageError(`${flag}: ${FORMS}. There is no file ${JSON.stringify(only)}.`);
  }
  return encodeJson(await readSchema(only));
}

function isMember(text: string): boolean {
  return !text.trimStart().startsWith("{") && text.includes("=") && !existsSync(text);
}

function inlineSchema(flag: string, text: string): string {
  try {
    parseJson(Buffer.from(text));
    return text;
  } catch (error) {
    throw usageError(`${flag}: is no JSON: ${messageOf(error)}`);
  }
}
