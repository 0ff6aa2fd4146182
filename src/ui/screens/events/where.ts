import { SEARCH_LIMITS } from "../../../domain/event.ts";
import { MEMBER_SEARCH_FORM, memberSearch } from "../../../domain/words/member-search.ts";

/** What a search for payloads is asked for, or what is wrong with it. */
interface Where {
  readonly schema?: string;
  readonly wrong?: string;
}

/** The last space before another path and its `=`; names in quotes may hold anything. */
const NEXT_MEMBER = /\s(?=(?:[^\s="]|\["(?:[^"\\]|\\.)*"\])+=)/s;

/**
 * The JSON Schema, as JSON, of what a person looks for.
 * @param text a schema that begins with a brace, or any number of members with spaces between
 */
export function whereSchema(text: string): Where {
  if (text.length > SEARCH_LIMITS.whereLength) return { wrong: "where is too long." };
  if (text.trimStart().startsWith("{")) {
    try {
      JSON.parse(text);
      return { schema: text };
    } catch (error) {
      return { wrong: `where is no JSON: ${(error as Error).message}` };
    }
  }
  const schema = memberSearch(
    text
      .trim()
      .split(NEXT_MEMBER)
      .map((member) => member.trim()),
  );
  return schema === undefined ? { wrong: `where ${MEMBER_SEARCH_FORM}, or a JSON Schema.` } : { schema };
}
