import { _, type Code, type CodeKeywordDefinition, type KeywordCxt, type Name } from "ajv";
import type { JsonObject } from "../keywords.ts";
import { budget, spend } from "../limits.ts";
import { has } from "./evaluate.ts";
import { namesOf } from "./values.ts";

// The keywords about the members of objects and the items of lists, in place of Ajv's: they count a step for each member or
// item, collect no errors, and keep to the draft where a list or an object is empty, or has a member `__proto__`.

/** Steps for a member's name besides its schema; a very long name is also copied. */
const STEPS_PER_MEMBER = 2;
/** Steps to look up one name, in an object with very many. */
const STEPS_PER_NEEDED = 4;

/** Writes the check of one name of an object, which sets `valid`. */
type NameCode = (name: Name, valid: Name) => void;

export const OBJECT_KEYWORDS: readonly CodeKeywordDefinition[] = [
  sizeLimit("minProperties", _`<`),
  sizeLimit("maxProperties", _`>`),
  ofNames("propertyNames", (cxt) => (name, valid) => {
    check(cxt, valid, { data: name, dataTypes: ["string"], propertyName: name });
  }),
  ofNames("patternProperties", underPatterns),
  ofNames("additionalProperties", notListed),
  {
    keyword: "dependencies",
    type: "object",
    trackErrors: true,
    code(cxt) {
      const { gen, data } = cxt;
      const valid = gen.let("valid", true);
      const own = gen.scopeValue("func", { ref: has, key: has });
      const all = gen.scopeValue("func", { ref: hasAll, key: hasAll });
      for (const [name, needed] of Object.entries(cxt.schema as JsonObject)) {
        gen.if(_`${valid} && ${own}(${data}, ${name})`, () => {
          if (!Array.isArray(needed)) check(cxt, valid, { schemaProp: name });
          else gen.assign(valid, _`${all}(${data}, ${gen.scopeValue("obj", { ref: needed })})`);
        });
      }
      cxt.pass(valid);
    },
  },
  {
    keyword: "contains",
    type: "array",
    trackErrors: true,
    // Ajv passes over what comes behind `items` where the list is empty.
    before: "items",
    code(cxt) {
      const { gen, data } = cxt;
      const valid = gen.let("valid", false);
      gen.forRange("index", 0, _`${data}.length`, (index) => {
        countSteps(gen, _`1`);
        check(cxt, valid, { dataProp: index });
        gen.if(valid, () => gen.break());
      });
      cxt.pass(valid);
    },
  },
];

function sizeLimit(keyword: string, breaks: Code): CodeKeywordDefinition {
  return {
    keyword,
    type: "object",
    code(cxt) {
      const names = cxt.gen.scopeValue("func", { ref: namesOf, key: namesOf });
      cxt.fail(_`${names}(${cxt.data}).length ${breaks} ${cxt.schemaCode}`);
    },
  };
}

/** A keyword that all names of an object must pass. The first that does not ends it. */
function ofNames(keyword: string, codeFor: (cxt: KeywordCxt) => NameCode | undefined): CodeKeywordDefinition {
  return {
    keyword,
    type: "object",
    trackErrors: true,
    code(cxt) {
      const { gen, data } = cxt;
      const valid = gen.let("valid", true);
      const checkName = codeFor(cxt);
      if (checkName === undefined) return;
      const names = gen.scopeValue("func", { ref: namesOf, key: namesOf });
      gen.forOf("name", _`${names}(${data})`, (name) => {
        countSteps(gen, _`${STEPS_PER_MEMBER} + (${name}.length >> 5)`);
        checkName(name, valid);
        gen.if(_`!${valid}`, () => gen.break());
      });
      cxt.pass(valid);
    },
  };
}

function underPatterns(cxt: KeywordCxt): NameCode | undefined {
  const { gen, it } = cxt;
  // A pattern that allows everything is listed for `additionalProperties` alone.
  const patterns = Object.entries(cxt.schema as JsonObject).filter(([, inner]) => inner !== true);
  if (patterns.length === 0) return undefined;
  return (name, valid) => {
    for (const [pattern] of patterns) {
      const matcher = gen.scopeValue("pattern", { ref: it.opts.code.regExp(pattern, "u"), key: pattern });
      gen.if(_`${valid} && ${matcher}.test(${name})`, () => {
        check(cxt, valid, { schemaProp: pattern, dataProp: name });
      });
    }
  };
}

function notListed(cxt: KeywordCxt): NameCode | undefined {
  const { gen, it } = cxt;
  if (cxt.schema === true) return undefined;
  const { properties = {}, patternProperties = {} } = cxt.parentSchema;
  const listed = new Set(Object.keys(properties as JsonObject));
  const patterns = Object.keys(patternProperties as JsonObject).map((one) => it.opts.code.regExp(one, "u"));
  const isOther = gen.scopeValue("func", {
    ref: (name: string) => !listed.has(name) && !patterns.some((pattern) => pattern.test(name)),
  });
  return (name, valid) => {
    gen.if(_`${isOther}(${name})`, () => check(cxt, valid, { dataProp: name }));
  };
}

/** Sets `valid` to whether a value conforms to a schema inside the keyword. */
function check(
  cxt: KeywordCxt,
  valid: Name,
  inner: Omit<Parameters<KeywordCxt["subschema"]>[0], "keyword">,
): void {
  const conforms = cxt.gen.name("conforms");
  cxt.subschema({ keyword: cxt.keyword, compositeRule: true, ...inner }, conforms);
  cxt.gen.assign(valid, conforms);
  // Ajv would collect an error for each value that does not.
  cxt.gen.if(_`!${conforms}`, () => cxt.reset());
}

function hasAll(value: JsonObject, names: readonly string[]): boolean {
  spend(STEPS_PER_NEEDED * names.length);
  return names.every((name) => Object.hasOwn(value, name));
}

/** Writes code that spends steps. */
export function countSteps(gen: KeywordCxt["gen"], steps: Code): void {
  const counter = gen.scopeValue("obj", { ref: budget, key: budget });
  gen.if(_`(${counter}.left -= ${steps}) < 0`, () => gen.code(_`${counter}.exceeded()`));
}
