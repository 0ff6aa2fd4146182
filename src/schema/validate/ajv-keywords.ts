import { _, type Ajv, type CodeKeywordDefinition, type ValidateFunction } from "ajv";
import { spend } from "../limits.ts";
import { countSteps, OBJECT_KEYWORDS } from "./ajv-objects.ts";
import { charactersIn, firstRepeated, isMultipleOf, ValueSet } from "./values.ts";

function listing(keyword: "enum" | "const"): CodeKeywordDefinition {
  return {
    keyword,
    code(cxt) {
      const values = keyword === "enum" ? (cxt.schema as unknown[]) : [cxt.schema as unknown];
      const allowed = cxt.gen.scopeValue("obj", { ref: new ValueSet(values) });
      cxt.fail(_`!${allowed}.has(${cxt.data})`);
    },
  };
}

const uniqueItems: CodeKeywordDefinition = {
  keyword: "uniqueItems",
  type: "array",
  schemaType: "boolean",
  code(cxt) {
    if (cxt.schema !== true) return;
    const find = cxt.gen.scopeValue("func", { ref: firstRepeated, key: firstRepeated });
    cxt.fail(_`${find}(${cxt.data}) >= 0`);
  },
};

function comparison(
  keyword: string,
  type: "number" | "string",
  conforms: (value: never, schema: never) => boolean,
): CodeKeywordDefinition {
  return {
    keyword,
    type,
    schemaType: "number",
    code(cxt) {
      const check = cxt.gen.scopeValue("func", { ref: conforms, key: conforms });
      cxt.fail(_`!${check}(${cxt.data}, ${cxt.schemaCode})`);
    },
  };
}

/** These compare by the equality of JSON Schema, and count their steps. */
const REPLACED: readonly CodeKeywordDefinition[] = [
  listing("enum"),
  listing("const"),
  uniqueItems,
  comparison("multipleOf", "number", isMultipleOf),
  comparison("minLength", "string", isLongEnough),
  comparison("maxLength", "string", isShortEnough),
  ...OBJECT_KEYWORDS,
];

// A string has at least half as many characters as UTF-16 units and at most as many, so they are seldom counted.
function isLongEnough(text: string, limit: number): boolean {
  return text.length >= limit && (text.length >= 2 * limit || counted(text) >= limit);
}

function isShortEnough(text: string, limit: number): boolean {
  return text.length <= limit || (text.length <= 2 * limit && counted(text) <= limit);
}

function counted(text: string): number {
  spend(text.length >> 3);
  return charactersIn(text);
}

/** Counts the steps of the part of a schema that it is in, each time that part is run. */
export const STEPS = "evreg:steps";
/** Runs another part, by its number. */
export const CALL = "evreg:call";
/** Holds a part. */
export const PART = "evreg:part";

/** The compiled parts of one schema, filled after each knows the table. */
export type PartTable = ValidateFunction[];

/** Replaces Ajv's keywords that are too slow or wrong, and adds the three of this product. */
export function addKeywords(ajv: Ajv, parts: PartTable): void {
  for (const { keyword } of REPLACED) ajv.removeKeyword(keyword as string);
  for (const definition of [part, steps, callInto(parts), ...REPLACED]) ajv.addKeyword(definition);
}

/**
 * Has Ajv make no errors, which take it most of the time where branches fail, and most of its code. `faultsIn` finds what is
 * wrong with a value that does not conform.
 */
const part: CodeKeywordDefinition = {
  keyword: PART,
  code(cxt) {
    const valid = cxt.gen.name("valid");
    cxt.subschema({ keyword: PART, createErrors: false }, valid);
    cxt.ok(valid);
  },
};

const steps: CodeKeywordDefinition = {
  keyword: STEPS,
  schemaType: "number",
  // Ahead of all that may fail and end the part.
  before: "not",
  code(cxt) {
    countSteps(cxt.gen, _`${cxt.schema as number}`);
  },
};

/** Calls a part as a `$ref` does, but finds it in a table at run time, so that compiling does not recurse. */
function callInto(parts: PartTable): CodeKeywordDefinition {
  return {
    keyword: CALL,
    schemaType: "number",
    code(cxt) {
      const table = cxt.gen.scopeValue("obj", { ref: parts, key: parts });
      cxt.pass(_`${table}[${cxt.schema as number}](${cxt.data})`);
    },
  };
}
