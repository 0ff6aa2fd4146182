import { _, type Ajv, type Code, type CodeKeywordDefinition, type KeywordCxt } from "ajv";
import { budget, SCHEMA_LIMITS } from "../limits.ts";
import { namesOf } from "./values.ts";

/** Steps for a member's name besides its schema; a very long name is also copied. */
const STEPS_PER_MEMBER = 2;
/** With more patterns, Ajv does not write them into one condition. */
const MAX_WRITTEN_PATTERNS = 32;
/** Stands for all patterns of a schema; no pattern may be as long. */
const ANY_PATTERN = "any".padEnd(SCHEMA_LIMITS.patternLength + 1, ".");

type KeywordCode = (cxt: KeywordCxt) => void;

/** Makes Ajv count every step over objects and lists, and not accumulate errors. */
export function boundIteration(ajv: Ajv): void {
  rework(ajv, "minProperties", (cxt) => countMembers(cxt, _`<`));
  rework(ajv, "maxProperties", (cxt) => countMembers(cxt, _`>`));
  rework(ajv, "propertyNames", (cxt, original) => {
    countNames(cxt);
    original(cxt);
  });
  for (const keyword of ["additionalProperties", "patternProperties"]) {
    rework(ajv, keyword, (cxt, original) => {
      countNames(cxt);
      if (keyword === "additionalProperties") joinPatterns(cxt);
      original(cxt);
    });
  }
  rework(ajv, "contains", (cxt, original) => {
    dropErrors(cxt);
    refuseEmpty(cxt);
    original(cxt);
  });
}

/** Replaces the code of a keyword of this one instance. */
function rework(ajv: Ajv, keyword: string, code: (cxt: KeywordCxt, original: KeywordCode) => void): void {
  const definition = ajv.getKeyword(keyword) as CodeKeywordDefinition & { code: KeywordCode };
  // Two keywords may share one definition.
  const original = definition.code;
  definition.code = (cxt) => (cxt.keyword === keyword ? code(cxt, original) : original(cxt));
}

function countMembers(cxt: KeywordCxt, breaks: Code): void {
  const names = cxt.gen.scopeValue("func", { ref: namesOf, key: namesOf });
  cxt.fail(_`${names}(${cxt.data}).length ${breaks} ${cxt.schema as number}`);
}

function countNames({ gen }: KeywordCxt): void {
  const names = gen.scopeValue("func", { ref: namesOf, key: namesOf });
  gen.forIn = (name, object, body) =>
    gen.forOf(name, _`${names}(${object})`, (key) => {
      countSteps(gen, _`${STEPS_PER_MEMBER} + (${key}.length >> 5)`);
      body(key);
    });
}

/** Writes code that spends steps. */
export function countSteps(gen: KeywordCxt["gen"], steps: Code): void {
  const counter = gen.scopeValue("obj", { ref: budget, key: budget });
  gen.if(_`(${counter}.left -= ${steps}) < 0`, () => gen.code(_`${counter}.exceeded()`));
}

/**
 * Ajv writes one condition for a name that matches none of the patterns: a quarter of a second for a thousand. Instead it
 * gets one pattern that stands for them all.
 */
function joinPatterns(cxt: KeywordCxt): void {
  const patterns = Object.keys((cxt.parentSchema["patternProperties"] ?? {}) as object);
  if (patterns.length <= MAX_WRITTEN_PATTERNS) return;
  const { opts } = cxt.it;
  const one = opts.code.regExp;
  const all = patterns.map((pattern) => one(pattern, "u"));
  const any = {
    test: (name: string) => all.some((pattern) => pattern.test(name)),
    toString: () => `any:${JSON.stringify(patterns)}`,
  };
  const regExp = (pattern: string) => (pattern === ANY_PATTERN ? any : one(pattern, "u"));
  const code = { ...opts.code, regExp: Object.assign(regExp, { code: one.code }) };
  Object.assign(cxt, {
    parentSchema: { ...cxt.parentSchema, patternProperties: { [ANY_PATTERN]: true } },
    it: { ...cxt.it, opts: { ...opts, code } },
  });
}

/** Ajv collects an error for every item that does not match, until the list ends. */
function dropErrors(cxt: KeywordCxt): void {
  const counter = cxt.gen.scopeValue("obj", { ref: budget, key: budget });
  const apply = cxt.subschema.bind(cxt);
  cxt.subschema = (arguments_, valid) => {
    const inner = apply(arguments_, valid);
    cxt.gen.if(_`!${valid}`, () => {
      cxt.gen.code(_`${counter}.left--`);
      cxt.reset();
    });
    return inner;
  };
}

/** For an empty list inside a list, Ajv would repeat its verdict on the list before. */
function refuseEmpty(cxt: KeywordCxt): void {
  const result = cxt.result.bind(cxt);
  cxt.result = (found, ...actions) => result(_`${cxt.data}.length > 0 && ${found}`, ...actions);
}
