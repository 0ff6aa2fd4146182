import {
  _,
  type Ajv,
  type CodeKeywordDefinition,
  type ErrorObject,
  Name,
  str,
  type ValidateFunction,
} from "ajv";
import { spend } from "../limits.ts";
import { boundIteration, countSteps } from "./ajv-objects.ts";
import { primaryError, primaryErrors } from "./errors.ts";
import { charactersIn, firstEqual, firstRepeated, isMultipleOf, ValueSet } from "./values.ts";

/** @param param the error's name for the keyword's value */
function listing(keyword: "enum" | "const", param: string): CodeKeywordDefinition {
  const name = new Name(param);
  return {
    keyword,
    error: { message: "", params: ({ schemaCode }) => _`{${name}: ${schemaCode}}` },
    code(cxt) {
      const values = keyword === "enum" ? (cxt.schema as unknown[]) : [cxt.schema as unknown];
      const allowed = cxt.gen.scopeValue("obj", { ref: new ValueSet(values) });
      cxt.fail(_`!${allowed}.has(${cxt.data})`);
    },
  };
}

export const UNIQUE_ITEMS: CodeKeywordDefinition = {
  keyword: "uniqueItems",
  type: "array",
  schemaType: "boolean",
  error: { message: "", params: ({ params }) => _`{i: ${params["first"]}, j: ${params["second"]}}` },
  code(cxt) {
    if (cxt.schema !== true) return;
    const { gen, data } = cxt;
    const find = gen.scopeValue("func", { ref: firstRepeated, key: firstRepeated });
    const findFirst = gen.scopeValue("func", { ref: firstEqual, key: firstEqual });
    const second = gen.const("second", _`${find}(${data})`);
    cxt.setParams({ second, first: _`${findFirst}(${data}, ${second})` });
    cxt.fail(_`${second} >= 0`);
  },
};

/** @param param the error's name for the keyword's value */
function comparison(
  keyword: string,
  type: "number" | "string",
  param: string,
  conforms: (value: never, schema: never) => boolean,
): CodeKeywordDefinition {
  const name = new Name(param);
  return {
    keyword,
    type,
    schemaType: "number",
    error: { message: "", params: ({ schemaCode }) => _`{${name}: ${schemaCode}}` },
    code(cxt) {
      const check = cxt.gen.scopeValue("func", { ref: conforms, key: conforms });
      cxt.fail(_`!${check}(${cxt.data}, ${cxt.schemaCode})`);
    },
  };
}

/** These compare by the equality of JSON Schema, and count their steps. */
const REPLACED: readonly CodeKeywordDefinition[] = [
  listing("enum", "allowedValues"),
  listing("const", "allowedValue"),
  UNIQUE_ITEMS,
  comparison("multipleOf", "number", "multipleOf", isMultipleOf),
  comparison("minLength", "string", "limit", isLongEnough),
  comparison("maxLength", "string", "limit", isShortEnough),
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

/** The compiled parts of one schema, filled after each knows the table. */
export type PartTable = ValidateFunction[];

/** A check that looks for all errors ends after these, as they take memory. */
const MAX_ERRORS = 200;

/**
 * Replaces Ajv's keywords that are too slow or wrong, and adds the two of this product. With Ajv's option `allErrors` a
 * part propagates all its errors.
 */
export function addKeywords(ajv: Ajv, parts: PartTable): void {
  for (const { keyword } of REPLACED) ajv.removeKeyword(keyword as string);
  for (const definition of [steps, callInto(parts), ...REPLACED]) ajv.addKeyword(definition);
  boundIteration(ajv);
}

/** Ends a part that has found too many errors. */
class EnoughErrors extends Error {
  readonly errors: readonly ErrorObject[];

  constructor(errors: readonly ErrorObject[]) {
    super();
    this.errors = errors;
  }
}

/** Runs a part. One with too many errors has failed with those. */
export function runPart(part: ValidateFunction, value: unknown): readonly ErrorObject[] | undefined {
  try {
    return part(value) ? undefined : (part.errors ?? []);
  } catch (error) {
    if (!(error instanceof EnoughErrors)) throw error;
    return error.errors;
  }
}

const enough = (errors: readonly ErrorObject[]): never => {
  throw new EnoughErrors(errors);
};

/** Ajv's own names in the code of a part. */
const [PLACE, ALL, COUNT] = [new Name("instancePath"), new Name("vErrors"), new Name("errors")] as const;

const steps: CodeKeywordDefinition = {
  keyword: STEPS,
  schemaType: "number",
  // Ahead of all that may fail and end the part.
  before: "not",
  code(cxt) {
    const counter = countSteps(cxt.gen, _`${cxt.schema as number}`);
    if (cxt.it.opts.allErrors !== true) return;
    // The errors of a branch do not count once another branch holds, so they are not propagated.
    const end = cxt.gen.scopeValue("func", { ref: enough, key: enough });
    const ending = cxt.it.compositeRule === true ? _`${counter}.exceeded()` : _`${end}(${ALL})`;
    cxt.gen.if(_`${COUNT} > ${MAX_ERRORS}`, () => cxt.gen.code(ending));
  },
};

/**
 * Like a `$ref`, with three differences. Parts are found in a table at run time, so compiling does not recurse. A failing
 * part propagates one error, so they cannot pile up. The path of the value in the payload is only built when it fails.
 */
function callInto(parts: PartTable): CodeKeywordDefinition {
  return {
    keyword: CALL,
    schemaType: "number",
    code(cxt) {
      const { gen, data, it } = cxt;
      const table = gen.scopeValue("obj", { ref: parts, key: parts });
      const part = _`${table}[${cxt.schema as number}]`;
      const place = str`${PLACE}${it.errorPath}`;
      const schemaPath = str`${it.errSchemaPath}/${CALL}`;
      if (it.opts.allErrors === true) {
        const run = gen.scopeValue("func", { ref: runPart, key: runPart });
        const pick = gen.scopeValue("func", { ref: propagateAllErrors, key: propagateAllErrors });
        const found = gen.const("partErrors", _`${run}(${part}, ${data})`);
        cxt.result(_`${found} === undefined`, undefined, () => {
          const errors = gen.const("propagated", _`${pick}(${found}, ${place}, ${schemaPath})`);
          gen.code(_`${ALL} = ${ALL} === null ? ${errors} : ${ALL}.concat(${errors})`);
          gen.code(_`${COUNT} += ${errors}.length`);
        });
        return;
      }
      const pick = gen.scopeValue("func", { ref: propagateError, key: propagateError });
      cxt.result(_`${part}(${data})`, undefined, () => {
        const error = gen.const("partError", _`${pick}(${part}.errors, ${place}, ${schemaPath})`);
        gen.if(_`${ALL} === null`, _`${ALL} = [${error}]`, _`${ALL}.push(${error})`);
        gen.code(_`${COUNT}++`);
      });
    },
  };
}

/** The primary error of a part, placed within its caller. A check that fails often spends most of its time with errors. */
function propagateError(errors: readonly ErrorObject[], place: string, schemaPath: string): ErrorObject {
  for (const { instancePath } of errors) spend(8 + (instancePath.length >> 5));
  spend(16);
  const error = primaryError(errors);
  return { ...error, instancePath: place + error.instancePath, schemaPath };
}

/** All primary errors of a part, placed within its caller. */
function propagateAllErrors(
  errors: readonly ErrorObject[],
  place: string,
  schemaPath: string,
): ErrorObject[] {
  spend(16 * (1 + errors.length));
  return primaryErrors(errors).map((error) =>
    Object.assign({}, error, { instancePath: place + error.instancePath, schemaPath }),
  );
}
