import { Ajv } from "ajv";
import { isAnnotation, isObject } from "../keywords.ts";
import type { SchemaDocument, SchemaNode } from "../node.ts";
import { FORMATS } from "./formats.ts";

// Schemas as most are written go to Ajv as they are, which checks a payload of theirs in a third of the time. It counts no
// steps: what these keywords check grows with the payload alone.

/** Keywords that Ajv checks by the draft, and in time that grows with the value. */
const USUAL = new Set(
  "$schema type const enum minimum maximum exclusiveMinimum exclusiveMaximum minLength maxLength pattern format items minItems maxItems properties required additionalProperties minProperties maxProperties".split(
    " ",
  ),
);
/** Ajv compiles so many schemas, and so many names and values that they list, in some 10 ms. */
const MOST = 64;
const MOST_LISTED = 128;
/** It looks for each property in each value, which takes a quarter of a microsecond where values have ever other names. */
const MOST_REPEATED = 12;

/** Whether Ajv can be left alone with a document. */
export function isUsual({ root, nodes }: SchemaDocument): boolean {
  const listed = nodes.reduce((sum, node) => sum + listedIn(node), 0);
  return nodes.length <= MOST && listed <= MOST_LISTED && isUsualWithin(root, false);
}

function listedIn({ required, schema }: SchemaNode): number {
  const { enum: values = [] } = isObject(schema) ? schema : {};
  return required.length + (values as readonly unknown[]).length;
}

/** @param isRepeated whether one payload may have many values that it is for */
function isUsualWithin(node: SchemaNode, isRepeated: boolean): boolean {
  return (
    isUsualSchema(node) &&
    (!isRepeated || node.properties.size <= MOST_REPEATED) &&
    node.subschemas.every(({ keyword, node: inner }) =>
      isUsualWithin(inner, isRepeated || keyword !== "properties"),
    )
  );
}

function isUsualSchema({ schema, tuple, properties, required }: SchemaNode): boolean {
  if (!isObject(schema)) return true;
  const { const: only = null, enum: values = [null] } = schema;
  return (
    Object.keys(schema).every(
      (keyword) => USUAL.has(keyword) || (isAnnotation(keyword) && keyword !== "$id"),
    ) &&
    tuple === undefined &&
    [...properties.keys()].every(isUsualName) &&
    // Ajv takes this name for none that is missing.
    !required.includes("") &&
    areScalars([only]) &&
    areScalars(values as readonly unknown[])
  );
}

/** Ajv ignores the one, and cannot compile half of a surrogate pair. */
function isUsualName(name: string): boolean {
  return name !== "__proto__" && name.isWellFormed();
}

/** Ajv takes no empty list. */
function areScalars(values: readonly unknown[]): boolean {
  return values.length > 0 && values.every((value) => typeof value !== "object" || value === null);
}

/** Compiles a usual document. */
export function checkByAjv({ schemata, patterns }: SchemaDocument): (value: unknown) => boolean {
  // One instance for one schema: Ajv holds what it has compiled, and is released with its schema.
  const ajv = new Ajv({
    meta: false,
    validateSchema: false,
    addUsedSchema: false,
    strict: false,
    strictNumbers: true,
    logger: false,
    messages: false,
    ownProperties: true,
    formats: FORMATS,
    code: { regExp: patterns.engine(), optimize: false },
  });
  return ajv.compile(schemata);
}
