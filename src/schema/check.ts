import type { SchemaWarning } from "../domain/action.ts";
import { refuseSchema, type SchemaMember, SchemaRefusal } from "./document-rules.ts";
import {
  closestKeyword,
  insteadOfNullable,
  isAnnotation,
  isDefinitions,
  isKnown,
  isObject,
  type JsonObject,
  patternsIn,
} from "./keywords.ts";
import { runSync, type Steps } from "../runtime/yielding.ts";
import { refillBudget, SCHEMA_LIMITS } from "./limits.ts";
import { PatternSyntaxError } from "./patterns/syntax.ts";
import { pointerTo } from "./pointers.ts";
import type { SchemaDocument, SchemaNode } from "./node.ts";
import { readSchemaSteps } from "./read.ts";
import { compileDocumentSteps } from "./validate/compile.ts";
import { isCheckedFormat } from "./validate/formats.ts";
import { firstEqual, firstRepeated } from "./validate/values.ts";

const MAX_WARNINGS = 100;

/**
 * Checks that a document is JSON Schema draft-07, safe to compile, and within `SCHEMA_LIMITS`.
 * @param member where it stands in the request
 * @returns what is legal but checks nothing, so probably a mistake
 * @throws `invalid` with the place (`schemata.properties.zip.pattern`) and the reason
 */
export function checkSchema(
  schemata: unknown,
  member: SchemaMember = "schemata",
): { warnings: SchemaWarning[] } {
  return runSync(checkSchemaSteps(schemata, member));
}

/** The same in steps. */
export function* checkSchemaSteps(
  schemata: unknown,
  member: SchemaMember = "schemata",
): Steps<{ warnings: SchemaWarning[] }> {
  try {
    const maxBytes = member === "schemata" ? SCHEMA_LIMITS.bytes : SCHEMA_LIMITS.filterBytes;
    return { warnings: yield* checkDocumentSteps(schemata, maxBytes) };
  } catch (error) {
    throw error instanceof SchemaRefusal ? error.in(member) : error;
  }
}

function* checkDocumentSteps(schemata: unknown, maxBytes: number): Steps<SchemaWarning[]> {
  const document = yield* readSchemaSteps(schemata, maxBytes);
  for (const node of document.nodes) {
    yield;
    yield* checkLimitsSteps(node);
  }
  yield* compileDocumentSteps(document);
  return yield* warningsSteps(document);
}

function* checkLimitsSteps({ schema, pointer, document }: SchemaNode): Steps<void> {
  if (!isObject(schema)) return;
  const refuse = (steps: readonly string[], message: string, value?: unknown): never => {
    throw refuseSchema(document.schemata, steps.reduce<string>(pointerTo, pointer), message, value);
  };
  for (const { pattern, steps } of patternsIn(schema)) {
    if (pattern.length > SCHEMA_LIMITS.patternLength) {
      refuse(
        steps,
        `must be a pattern of at most ${SCHEMA_LIMITS.patternLength.toLocaleString("en")} characters`,
      );
    }
    try {
      yield* document.patterns.compileSteps(pattern);
    } catch (error) {
      if (!(error instanceof PatternSyntaxError)) throw error;
      refuse(steps, `the pattern ${error.message}`, pattern);
    }
  }
  if (Array.isArray(schema["enum"]) && schema["enum"].length > SCHEMA_LIMITS.enumValues) {
    refuse(["enum"], `must list at most ${SCHEMA_LIMITS.enumValues.toLocaleString("en")} values`);
  }
  for (const keyword of ["oneOf", "items"]) {
    const list = schema[keyword];
    if (Array.isArray(list) && list.length > SCHEMA_LIMITS.branches) {
      refuse([keyword], `must list at most ${SCHEMA_LIMITS.branches} schemas`);
    }
  }
}

function* warningsSteps({ nodes }: SchemaDocument): Steps<SchemaWarning[]> {
  const warnings: SchemaWarning[] = [];
  let unlisted = 0;
  for (const { schema, pointer } of nodes) {
    if (!isObject(schema)) continue;
    for (const keyword of Object.keys(schema)) {
      const isListed = warnings.length < MAX_WARNINGS;
      // Looking for the keyword it may stand for takes longer than all else.
      if (isListed && !isKnown(keyword)) yield;
      const message = messageFor(keyword, schema, isListed);
      if (message === undefined) continue;
      if (isListed) warnings.push({ pointer: pointerTo(pointer, keyword), message });
      else unlisted++;
    }
  }
  if (unlisted > 0) {
    const places = `${unlisted.toLocaleString("en")} more ${unlisted === 1 ? "place checks" : "places check"}`;
    const message = `${places} nothing; the first ${MAX_WARNINGS} are listed`;
    warnings.push({ pointer: "", message });
  }
  return warnings;
}

/** @param hinted whether to look for the keyword that a misspelt one stands for */
function messageFor(keyword: string, schema: JsonObject, hinted: boolean): string | undefined {
  if (keyword === "nullable") {
    const instead = schema["$ref"] === undefined ? insteadOfNullable(schema) : undefined;
    const hint = instead === undefined ? "" : `; write ${instead} instead`;
    return `nullable is not part of JSON Schema and checks nothing${hint}`;
  }
  if (!isKnown(keyword)) {
    // By custom such a name marks an extension on purpose.
    if (keyword.startsWith("x-")) return undefined;
    const meant = hinted ? closestKeyword(keyword) : undefined;
    const hint = meant === undefined ? "" : `; did you mean ${meant}?`;
    return `${shown(keyword)} is not a keyword of draft-07 and checks nothing${hint}`;
  }
  if (schema["$ref"] !== undefined) {
    if (keyword === "$ref" || isAnnotation(keyword) || isDefinitions(keyword)) return undefined;
    return `${keyword} is ignored beside $ref in draft-07; put both into allOf`;
  }
  if (keyword === "enum") return aboutEnum(schema["enum"] as unknown[]);
  if (keyword === "format" && typeof schema["format"] === "string" && !isCheckedFormat(schema["format"])) {
    return `the format ${shown(schema["format"])} is not known and checks nothing`;
  }
  return undefined;
}

function aboutEnum(values: readonly unknown[]): string | undefined {
  if (values.length === 0) return "enum lists no value, so nothing conforms";
  refillBudget();
  const second = firstRepeated(values);
  return second < 0
    ? undefined
    : `enum lists the same value twice (values ${firstEqual(values, second)} and ${second})`;
}

function shown(word: string): string {
  return JSON.stringify(word.length > 64 ? `${word.slice(0, 64).toWellFormed()}…` : word);
}
