import type { Action, SchemaHolder, SchemaWarning } from "../domain/action.ts";
import { EvregError } from "../domain/error.ts";
import { contradictionOf } from "./compatibility/unions.ts";
import { maxBytesOf, refusalIn, refuseSchema } from "./document-rules.ts";
import {
  closestKeyword,
  isAnnotation,
  isDefinitions,
  isKnown,
  isObject,
  type JsonObject,
  patternsIn,
  typesAbout,
} from "./keywords.ts";
import { runSync, type Steps } from "../runtime/yielding.ts";
import { budget, SCHEMA_LIMITS, StepsExceeded } from "./limits.ts";
import { pointerTo } from "../json/field-path.ts";
import type { SchemaDocument, SchemaNode } from "./node.ts";
import { readSchemaSteps } from "./read.ts";
import { compileDocumentSteps } from "./validate/compile.ts";
import { quoted } from "./validate/errors.ts";
import { closestFormat, isCheckedFormat, typesOfFormat } from "./validate/formats.ts";
import { typesNamed } from "./validate/values.ts";

const MAX_WARNINGS = 100;
const CONTRADICTION_STEPS = 100_000;

/**
 * Checks that a document is JSON Schema draft-07, safe to compile, and within `SCHEMA_LIMITS`.
 * @param member where it stands in the request
 * @param filtered the action whose payloads a filter is to choose from
 * @returns what is legal but checks nothing, so probably a mistake
 * @throws `invalid` with the place (`schemata.properties.zip.pattern`) and the reason
 */
export function checkSchema(
  schemata: unknown,
  member: SchemaHolder = "schemata",
  filtered?: FilteredAction,
): { warnings: SchemaWarning[] } {
  return runSync(checkSchemaSteps(schemata, member, filtered));
}

/** Checks a document in steps. */
export function* checkSchemaSteps(
  schemata: unknown,
  member: SchemaHolder = "schemata",
  filtered?: FilteredAction,
): Steps<{ warnings: SchemaWarning[] }> {
  let document: SchemaDocument;
  try {
    document = yield* readSchemaSteps(schemata, maxBytesOf(member));
    for (const node of document.nodes) checkLimits(node);
    yield* compileDocumentSteps(document);
  } catch (error) {
    throw refusalIn(member, error);
  }
  yield;
  const none = aboutPayloadType(document.schemata, member);
  const warnings = [...none, ...warningsOf(document)];
  if (filtered === undefined || none.length > 0) return { warnings };
  return { warnings: [...warnings, ...(yield* contradictionSteps(document, filtered))] };
}

/** What happens when no payload conforms, by the member that holds the schema. */
const NONE_CONFORMS: Readonly<Record<SchemaHolder, string>> = {
  schemata: "nothing can be published",
  filter: "nothing is sent",
  where: "nothing is found",
};

function aboutPayloadType({ $ref: reference, type }: JsonObject, member: SchemaHolder): SchemaWarning[] {
  // Beside a $ref the type is ignored, which is a warning of its own.
  if (type === undefined || reference !== undefined || [type].flat().includes("object")) return [];
  const message = `every payload is an object, so none conforms to the type ${JSON.stringify(type)} and ${NONE_CONFORMS[member]}; make it "object"`;
  return [{ pointer: "/type", message }];
}

export type FilteredAction = Pick<Action, "action" | "schemata">;

/** The warning about a filter that plainly no payload of the action passes. */
function* contradictionSteps(
  filter: SchemaDocument,
  { action, schemata }: FilteredAction,
): Steps<SchemaWarning[]> {
  try {
    const { root } = yield* readSchemaSteps(schemata);
    budget.left = CONTRADICTION_STEPS;
    const pointer = contradictionOf(filter.root, root)?.pointer;
    const message = `no payload that the schema of ${action} allows conforms to this, so nothing is sent`;
    return pointer === undefined ? [] : [{ pointer, message }];
  } catch (error) {
    // It takes too many steps or too much stack, or an earlier version stored a schema that is not valid.
    const isExpected = [StepsExceeded, RangeError, EvregError].some((kind) => error instanceof kind);
    if (!isExpected) throw error;
    return [];
  }
}

function checkLimits({ schema, pointer, document }: SchemaNode): void {
  if (!isObject(schema)) return;
  const limit = (steps: readonly string[], count: number, most: number, what: (most: string) => string) => {
    if (count <= most) return;
    const place = steps.reduce<string>(pointerTo, pointer);
    throw refuseSchema(document.schemata, place, `must ${what(most.toLocaleString("en"))}`);
  };
  for (const { pattern, steps } of patternsIn(schema)) {
    const { patternLength } = SCHEMA_LIMITS;
    limit(steps, pattern.length, patternLength, (most) => `be a pattern of at most ${most} characters`);
  }
  const { enum: values } = schema;
  const count = Array.isArray(values) ? values.length : 0;
  limit(["enum"], count, SCHEMA_LIMITS.enumValues, (most) => `list at most ${most} values`);
}

function warningsOf({ nodes }: SchemaDocument): SchemaWarning[] {
  const warnings: SchemaWarning[] = [];
  for (const { schema, pointer } of nodes) {
    if (!isObject(schema)) continue;
    for (const keyword of Object.keys(schema)) {
      const message = messageFor(keyword, schema);
      if (message !== undefined) warnings.push({ pointer: pointerTo(pointer, keyword), message });
      if (warnings.length === MAX_WARNINGS) return warnings;
    }
  }
  return warnings;
}

function messageFor(keyword: string, schema: JsonObject): string | undefined {
  // By custom such a name marks an extension on purpose.
  if (!isKnown(keyword)) return keyword.startsWith("x-") ? undefined : unknownKeyword(keyword);
  if (schema["$ref"] !== undefined) {
    if (keyword === "$ref" || isAnnotation(keyword) || isDefinitions(keyword)) return undefined;
    return `${keyword} is ignored beside $ref in draft-07; put both into allOf`;
  }
  if (keyword === "enum" && (schema["enum"] as unknown[]).length === 0) {
    return "enum lists no value, so nothing conforms";
  }
  if (keyword === "format" && typeof schema["format"] === "string" && !isCheckedFormat(schema["format"])) {
    const hint = hintOf(closestFormat(schema["format"]));
    return `the format ${quoted(schema["format"])} is not known and checks nothing${hint}`;
  }
  return aboutOtherTypes(keyword, schema);
}

/** What is to be said of a keyword that draft-07 does not have. */
export function unknownKeyword(keyword: string): string {
  if (keyword === "nullable") {
    return 'nullable is not part of JSON Schema and checks nothing; to allow null, write "null" into the list of types';
  }
  return `${quoted(keyword)} is not a keyword of draft-07 and checks nothing${hintOf(closestKeyword(keyword))}`;
}

/** The warning about a keyword that can refuse no value of the types that the schema allows. */
function aboutOtherTypes(keyword: string, { type, format }: JsonObject): string | undefined {
  const about = keyword === "format" ? typesOfFormat(String(format)) : typesAbout(keyword);
  if (isDefinitions(keyword) || (about & typesNamed(type)) !== 0) return undefined;
  const what = keyword === "format" ? `the format ${String(format)}` : keyword;
  return `${what} checks nothing here, as the type is ${JSON.stringify(type)}`;
}

function hintOf(meant: string | undefined): string {
  return meant === undefined ? "" : `; did you mean ${meant}?`;
}
