import {
  _,
  type Ajv,
  type CodeKeywordDefinition,
  type ErrorObject,
  Name,
  str,
  type ValidateFunction,
} from "ajv";
import { budget, spend } from "../limits.ts";
import { boundIteration } from "./ajv-objects.ts";
import { primaryError, primaryErrors } from "./errors.ts";
import { charactersIn, firstEqual, firstRepeated, isMultipleOf, sameValue, ValueSet } from "./values.ts";

/** Keywords that compare values, by the equality of JSON Schema and with their steps counted. */
export const VALUE_KEYWORDS: readonly CodeKeywordDefinition[] = [
  {
    keyword: "enum",
    schemaType: "array",
    error: { message: "", params: ({ schemaCode }) => _`{allowedValues: ${schemaCode}}` },
    code(cxt) {
      const allowed = cxt.gen.scopeValue("obj", { ref: new ValueSet(cxt.schema as unknown[]) });
      cxt.fail(_`!${allowed}.has(${cxt.data})`);
    },
  },
  {
    keyword: "const",
    error: { message: "", params: ({ schemaCode }) => _`{allowedValue: ${schemaCode}}` },
    code(cxt) {
      const same = cxt.gen.scopeValue("func", { ref: sameValue, key: sameValue });
      cxt.fail(_`!${same}(${cxt.data}, ${cxt.schemaCode})`);
    },
  },
  {
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
  },
  {
    keyword: "multipleOf",
    type: "number",
    schemaType: "number",
    error: { message: "", params: ({ schemaCode }) => _`{multipleOf: ${schemaCode}}` },
    code(cxt) {
      const check = cxt.gen.scopeValue("func", { ref: isMultipleOf, key: isMultipleOf });
      cxt.fail(_`!${check}(${cxt.data}, ${cxt.schema as number})`);
    },
  },
];

/** `minLength` and `maxLength`, which count characters only where they must. */
const LENGTH_KEYWORDS: readonly CodeKeywordDefinition[] = [
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
  return text.length < limit || (text.length < 2 * limit && counted(text) < limit);
}

function isLonger(text: string, limit: number): boolean {
  return text.length > limit && (text.length > 2 * limit || counted(text) > limit);
}

function counted(text: string): number {
  spend(text.length >> 3);
  return charactersIn(text);
}

/** Counts the steps of the part of a schema it stands in, each time that part is run. */
export const STEPS = "evreg:steps";
/** Goes on with another part, by its number. */
export const CALL = "evreg:call";

/** The compiled parts of one schema, filled after each knows the table. */
export type PartTable = ValidateFunction[];

/** A check that looks for all errors ends with more than these, as they take memory. */
const MAX_ERRORS = 200;

/**
 * Replaces Ajv's keywords whose time or answer will not do, and adds the two this product compiles to. With Ajv's option
 * `allErrors` a part propagates all its errors.
 */
export function addKeywords(ajv: Ajv, parts: PartTable): void {
  const replaced = [...VALUE_KEYWORDS, ...LENGTH_KEYWORDS];
  for (const { keyword } of replaced) ajv.removeKeyword(keyword as string);
  for (const definition of [steps, callInto(parts), ...replaced]) ajv.addKeyword(definition);
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

/** Runs a part. One that was ended has failed, with the errors it had by then. */
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
    const counter = cxt.gen.scopeValue("obj", { ref: budget, key: budget });
    cxt.gen.if(_`(${counter}.left -= ${cxt.schema as number}) < 0`, () =>
      cxt.gen.code(_`${counter}.exceeded()`),
    );
    if (cxt.it.opts.allErrors !== true) return;
    // The errors of a branch do not count once another branch holds, so they are not propagated.
    const end = cxt.gen.scopeValue("func", { ref: enough, key: enough });
    const ending = cxt.it.compositeRule === true ? _`${counter}.exceeded()` : _`${end}(${ALL})`;
    cxt.gen.if(_`${COUNT} > ${MAX_ERRORS}`, () => cxt.gen.code(ending));
  },
};

/**
 * Like a `$ref`, with three differences: parts are compiled one by one and found in a table at run time, so compiling
 * does not recurse; a failing part propagates one error, so errors cannot pile up; nothing is looked up by address, and
 * the place of the value within the payload is only built when it fails.
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
      if (it.opts.allErrors === true) {
        const run = gen.scopeValue("func", { ref: runPart, key: runPart });
        const pick = gen.scopeValue("func", { ref: propagateAllErrors, key: propagateAllErrors });
        const found = gen.const("partErrors", _`${run}(${part}, ${data})`);
        cxt.result(_`${found} === undefined`, undefined, () => {
          const errors = gen.const(
            "propagated",
            _`${pick}(${found}, ${place}, ${str`${it.errSchemaPath}/${CALL}`})`,
          );
          gen.code(_`${ALL} = ${ALL} === null ? ${errors} : ${ALL}.concat(${errors})`);
          gen.code(_`${COUNT} += ${errors}.length`);
        });
        return;
      }
      const pick = gen.scopeValue("func", { ref: propagateError, key: propagateError });
      cxt.result(_`${part}(${data})`, undefined, () => {
        const error = gen.const("partError", _`${pick}(${part}.errors, ${place})`);
        gen.if(_`${ALL} === null`, _`${ALL} = [${error}]`, _`${ALL}.push(${error})`);
        gen.code(_`${COUNT}++`);
      });
    },
  };
}

/**
 * The primary error of a part, with the part's place put before its own. Making and choosing errors takes most of the time
 * of a check that fails again and again.
 */
function propagateError(errors: readonly ErrorObject[], place: string): ErrorObject {
  for (const { instancePath } of errors) spend(8 + (instancePath.length >> 5));
  spend(16);
  const error = primaryError(errors);
  return { ...error, instancePath: place + error.instancePath };
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
