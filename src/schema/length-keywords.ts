import { _ } from "ajv";
import type { CodeKeywordDefinition } from "ajv";
import { spend } from "./budget.ts";

/** `minLength` and `maxLength`, which count characters only where they must. */
export const LENGTH_KEYWORDS: readonly CodeKeywordDefinition[] = [
  lengthLimit("minLength", isShorter),
  lengthLimit("maxLength", isLonger),
];

function lengthLimit(
  keyword: string,
  breaks: (text: string, limit: number) => boolean,
): CodeKeywordDefinition {
  return {
    keyword,
    type: "string",
    schemaType: "number",
    error: { message: "", params: ({ schemaCode }) => _`{limit: ${schemaCode}}` },
    code(cxt) {
      const check = cxt.gen.scopeValue("func", { ref: breaks, key: breaks });
      cxt.fail(_`${check}(${cxt.data}, ${cxt.schema as number})`);
    },
  };
}

// A string has at least half as many characters as UTF-16 units and at most as many: mostly nothing need be counted.
function isShorter(text: string, limit: number): boolean {
  return text.length < limit || (text.length < 2 * limit && charactersIn(text) < limit);
}

function isLonger(text: string, limit: number): boolean {
  return text.length > limit && (text.length > 2 * limit || charactersIn(text) > limit);
}

function charactersIn(text: string): number {
  spend(text.length >> 3);
  let count = 0;
  for (let at = 0; at < text.length; count++) at += text.codePointAt(at)! > 0xffff ? 2 : 1;
  return count;
}
