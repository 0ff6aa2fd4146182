import { _, Name, str } from "ajv";
import type { Ajv, CodeKeywordDefinition, ErrorObject, ValidateFunction } from "ajv";
import { budget, spend } from "./budget.ts";
import { governingError } from "./fault.ts";
import { LENGTH_KEYWORDS } from "./length-keywords.ts";
import { VALUE_KEYWORDS } from "./value-keywords.ts";
import { boundWalks } from "./walk-keywords.ts";

/** Counts the steps of the part of a schema it stands in, each time that part is run. */
export const STEPS = "evreg:steps";
/** Goes on with another part, by its number. */
export const CALL = "evreg:call";

/** The compiled parts of one schema, filled after each knows the table. */
export type PartTable = ValidateFunction[];

/** Replaces Ajv's keywords whose time or answer will not do, and adds the two this product compiles to. */
export function addKeywords(ajv: Ajv, parts: PartTable): void {
  const replaced = [...VALUE_KEYWORDS, ...LENGTH_KEYWORDS];
  for (const { keyword } of replaced) ajv.removeKeyword(keyword as string);
  for (const definition of [steps, callInto(parts), ...replaced]) ajv.addKeyword(definition);
  boundWalks(ajv);
}

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
  },
};

/**
 * Like a `$ref`, with three differences: parts are compiled one by one and found in a table at run time, so compiling
 * does not recurse; a failing part hands up one error, so errors cannot pile up; nothing is looked up by address, and
 * where the value is within the payload is only worked out when it fails.
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
      cxt.result(_`${part}(${data})`, undefined, () => {
        const error = gen.const("partError", _`${pick}(${part}.errors, ${str`${path}${it.errorPath}`})`);
        gen.if(_`${all} === null`, _`${all} = [${error}]`, _`${all}.push(${error})`);
        gen.code(_`${count}++`);
      });
    },
  };
}

/**
 * The error to tell of those a part found, with the part's place put before its own. Making and choosing errors is most
 * of the time of a check that fails again and again.
 */
function handUp(errors: readonly ErrorObject[], place: string): ErrorObject {
  for (const { instancePath } of errors) spend(8 + (instancePath.length >> 5));
  spend(16);
  const error = governingError(errors);
  return { ...error, instancePath: place + error.instancePath };
}
