import type { SchemaWarning } from "../domain/action.ts";
import { compilingDocument } from "./compile.ts";
import { readingSchema } from "./document.ts";
import type { SchemaDocument, SchemaNode } from "./document.ts";
import { pointerTo } from "./field-path.ts";
import { isCheckedFormat } from "./formats.ts";
import { closestKeyword, isAnnotation, isDefinitions, isKnown, isObject, patternsIn } from "./keywords.ts";
import type { JsonObject } from "./keywords.ts";
import { SCHEMA_LIMITS } from "./limits.ts";
import { PatternSyntaxError } from "./pattern-syntax.ts";
import { PatternCompiler } from "./pattern.ts";
import { refuseSchema, type SchemaMember, SchemaRefusal } from "./refusal.ts";
import { finish, type Task } from "./task.ts";

/**
 * Whether a document may become the schema of an action, or a filter: JSON Schema draft-07, safe to compile, and bounded in what a
 * check can cost (`SCHEMA_LIMITS`).
 * @param member where it stands in the request
 * @returns what is legal but checks nothing, so probably a slip
 * @throws `invalid` with the place (`schemata.properties.zip.pattern`) and the reason
 */
export function checkSchema(
  schemata: unknown,
  member: SchemaMember = "schemata",
): { warnings: SchemaWarning[] } {
  return finish(checkingSchema(schemata, member));
}

/** The same in steps. */
export function* checkingSchema(
  schemata: unknown,
  member: SchemaMember = "schemata",
): Task<{ warnings: SchemaWarning[] }> {
  try {
    return { warnings: yield* checkingDocument(schemata) };
  } catch (error) {
    throw error instanceof SchemaRefusal ? error.in(member) : error;
  }
}

function* checkingDocument(schemata: unknown): Task<SchemaWarning[]> {
  const document = yield* readingSchema(schemata);
  const patterns = new PatternCompiler();
  for (const node of document.nodes) {
    yield;
    yield* checkingLimits(document, node, patterns);
  }
  yield* compilingDocument(document, patterns);
  const warnings: SchemaWarning[] = [];
  for (const node of document.nodes) warnings.push(...(yield* warningsOf(node)));
  return warnings;
}

function* checkingLimits(
  { schemata }: SchemaDocument,
  { schema, pointer }: SchemaNode,
  patterns: PatternCompiler,
): Task<void> {
  if (!isObject(schema)) return;
  const refuse = (steps: readonly string[], message: string, value?: unknown): never => {
    throw refuseSchema(schemata, steps.reduce<string>(pointerTo, pointer), message, value);
  };
  for (const { pattern, steps } of patternsIn(schema)) {
    if (pattern.length > SCHEMA_LIMITS.patternLength) {
      refuse(
        steps,
        `must be a pattern of at most ${SCHEMA_LIMITS.patternLength.toLocaleString("en")} characters`,
      );
    }
    try {
      yield* patterns.compiling(pattern);
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

function* warningsOf({ schema, pointer }: SchemaNode): Task<SchemaWarning[]> {
  if (!isObject(schema)) return [];
  const warnings: SchemaWarning[] = [];
  for (const keyword of Object.keys(schema)) {
    // To look for what it may have meant takes longer than all else.
    if (!isKnown(keyword)) yield;
    const message = messageFor(keyword, schema);
    if (message !== undefined) warnings.push({ pointer: pointerTo(pointer, keyword), message });
  }
  return warnings;
}

function messageFor(keyword: string, schema: JsonObject): string | undefined {
  if (keyword === "nullable") {
    return 'nullable is not part of JSON Schema and checks nothing; write "type": ["string", "null"] instead';
  }
  if (!isKnown(keyword)) {
    // By custom such a name marks an extension on purpose.
    if (keyword.startsWith("x-")) return undefined;
    const meant = closestKeyword(keyword);
    const hint = meant === undefined ? "" : `; did you mean ${meant}?`;
    return `${shown(keyword)} is not a keyword of draft-07 and checks nothing${hint}`;
  }
  if (schema["$ref"] !== undefined) {
    if (keyword === "$ref" || isAnnotation(keyword) || isDefinitions(keyword)) return undefined;
    return `${keyword} is ignored beside $ref in draft-07; put both into allOf`;
  }
  if (keyword === "format" && typeof schema["format"] === "string" && !isCheckedFormat(schema["format"])) {
    return `the format ${shown(schema["format"])} is not known and checks nothing`;
  }
  return undefined;
}

function shown(word: string): string {
  return JSON.stringify(word.length > 64 ? `${word.slice(0, 64).toWellFormed()}…` : word);
}
