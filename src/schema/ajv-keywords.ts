import { _, Name, str } from "ajv";
import type { Ajv, CodeKeywordDefinition, ErrorObject, KeywordCxt, ValidateFunction } from "ajv";
import { budget, spend } from "./budget.ts";
import { ValueSet } from "./canonical.ts";
import { governingError } from "./fault.ts";
import { isMultipleOf } from "./multiple-of.ts";

/** Counts the steps of the part of a schema it stands in, each time that part is run. */
export const STEPS = "evreg:steps";
/** Goes on with another part, by its number. */
export const CALL = "evreg:call";

/** The compiled parts of one schema, filled after each knows the table. */
export type PartTable = ValidateFunction[];

/** Replaces Ajv's keywords whose time or answer will not do, and adds the two this product compiles to. */
export function addKeywords(ajv: Ajv, parts: PartTable): void {
  for (const keyword of ["enum", "uniqueItems", "multipleOf", "minLength", "maxLength"])
    ajv.removeKeyword(keyword);
  ajv.addKeyword(steps);
  ajv.addKeyword(callInto(parts));
  ajv.addKeyword(oneOfValues);
  ajv.addKeyword(uniqueItems);
  ajv.addKeyword(multipleOf);
  ajv.addKeyword(lengthLimit("minLength"));
  ajv.addKeyword(lengthLimit("maxLength"));
}

const steps: CodeKeywordDefinition = {
  keyword: STEPS,
  schemaType: "number",
  code(cxt) {
    const counter = cxt.gen.scopeValue("obj", { ref: budget, key: budget });
    cxt.gen.if(_`(${counter}.left -= ${cxt.schema as number}) < 0`, () =>
      cxt.gen.code(_`${counter}.exceeded()`),
    );
  },
};

/**
 * Like a `$ref`, with three differences: parts are compiled one by one and found in a table at run time, so compiling
 * does not recurse; a failing part hands up one error, so errors cannot pile up; nothing is looked up by address.
 */
function callInto(parts: PartTable): CodeKeywordDefinition {
  return {
    keyword: CALL,
    schemaType: "number",
    code(cxt) {
      const { gen, data, it } = cxt;
      const table = gen.scopeValue("obj", { ref: parts, key: parts });
      const pick = gen.scopeValue("func", { ref: handUp, key: handUp });
      const part = _`${table}[${cxt.schema as number}]`;
      const [path, all, count] = [new Name("instancePath"), new Name("vErrors"), new Name("errors")];
      cxt.result(_`${part}(${data}, {instancePath: ${str`${path}${it.errorPath}`}})`, undefined, () => {
        const error = gen.const("partError", _`${pick}(${part}.errors)`);
        gen.if(_`${all} === null`, _`${all} = [${error}]`, _`${all}.push(${error})`);
        gen.code(_`${count}++`);
      });
    },
  };
}

/** Making and choosing errors is most of the time of a check that fails again and again. */
function handUp(errors: readonly ErrorObject[]): ErrorObject {
  spend(20);
  return governingError(errors);
}

const oneOfValues: CodeKeywordDefinition = {
  keyword: "enum",
  schemaType: "array",
  error: { message: "", params: ({ schemaCode }) => _`{allowedValues: ${schemaCode}}` },
  code(cxt) {
    const allowed = cxt.gen.scopeValue("obj", { ref: new ValueSet(cxt.schema as unknown[]) });
    cxt.fail(_`!${allowed}.has(${cxt.data})`);
  },
};

const multipleOf: CodeKeywordDefinition = {
  keyword: "multipleOf",
  type: "number",
  schemaType: "number",
  error: { message: "", params: ({ schemaCode }) => _`{multipleOf: ${schemaCode}}` },
  code(cxt) {
    const check = cxt.gen.scopeValue("func", { ref: isMultipleOf, key: isMultipleOf });
    cxt.fail(_`!${check}(${cxt.data}, ${cxt.schema as number})`);
  },
};

const uniqueItems: CodeKeywordDefinition = {
  keyword: "uniqueItems",
  type: "array",
  schemaType: "boolean",
  error: { message: "", params: ({ params }) => _`{i: ${params["first"]}, j: ${params["second"]}}` },
  code(cxt) {
    if (cxt.schema !== true) return;
    const { gen, data } = cxt;
    const find = gen.scopeValue("func", { ref: firstRepeated, key: firstRepeated });
    const second = gen.const("second", _`${find}(${data})`);
    cxt.setParams({
      second,
      first: gen.const("first", _`${second} < 0 ? -1 : ${find}.first(${data}, ${second})`),
    });
    cxt.fail(_`${second} >= 0`);
  },
};

/** Place of the first item that equals an earlier one, or -1; `first` finds the earlier one. */
const firstRepeated = Object.assign(
  (items: readonly unknown[]): number => {
    const seen = new ValueSet();
    return items.findIndex((item) => !seen.add(item));
  },
  {
    first(items: readonly unknown[], second: number): number {
      const wanted = new ValueSet([items[second]]);
      return items.findIndex((item) => wanted.has(item));
    },
  },
);

function lengthLimit(keyword: "minLength" | "maxLength"): CodeKeywordDefinition {
  const breaks = keyword === "minLength" ? isShorter : isLonger;
  return {
    keyword,
    type: "string",
    schemaType: "number",
    error: { message: "", params: ({ schemaCode }) => _`{limit: ${schemaCode}}` },
    code(cxt: KeywordCxt) {
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
  spend(text.length >> 4);
  let count = 0;
  for (let at = 0; at < text.length; count++) at += text.codePointAt(at)! > 0xffff ? 2 : 1;
  return count;
}
