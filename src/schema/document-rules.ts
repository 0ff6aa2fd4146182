import type { SchemaHolder } from "../domain/action.ts";
import { EvregError, invalidField } from "../domain/error.ts";
import { isAnnotation, isObject, type JsonObject } from "./keywords.ts";
import { SCHEMA_LIMITS } from "./limits.ts";
import { fieldName, type FieldPath, pathOf, pointerTo } from "../json/field-path.ts";
import { shortened } from "./validate/errors.ts";

/** What a schema is refused with: `invalid` with the place in it, as if the request held it in `schemata`. */
export function refusalAt(path: FieldPath, message: string, value: unknown): EvregError {
  return invalidField(fieldName(path, "schemata"), message, shortened(value));
}

/** Refuses a schema at a place that is a JSON pointer into the document. */
export function refuseSchema(
  document: unknown,
  pointer: string,
  message: string,
  value?: unknown,
): EvregError {
  return refusalAt(pathOf(pointer, document), message, value);
}

/** Names the member of the request that holds the schema instead. */
export function refusalIn(member: SchemaHolder, error: unknown): unknown {
  if (!(error instanceof EvregError)) return error;
  const { field, message, value } = error.details;
  return invalidField(String(field).replace(/^schemata/, member), String(message), value);
}

export function maxBytesOf(member: SchemaHolder): number {
  return member === "schemata" ? SCHEMA_LIMITS.bytes : SCHEMA_LIMITS.filterBytes;
}

/** Checks the depth and size of a document, before anything recurses into it any deeper. */
export function checkSize(schemata: unknown, maxBytes: number): void {
  if (!isObject(schemata)) throw refuseSchema(schemata, "", "must be a JSON Schema object", schemata);
  checkInside(schemata, "", 1, schemata);
  const bytes = Buffer.byteLength(JSON.stringify(schemata));
  if (bytes > maxBytes) {
    const message = `must have at most ${maxBytes.toLocaleString("en")} bytes as JSON, not ${bytes.toLocaleString("en")}`;
    throw refuseSchema(undefined, "", message);
  }
}

/** A number that no double can hold, such as `1e400`, would be stored as `null` and mean something else from then on. */
function checkInside(container: object, pointer: string, depth: number, schemata: unknown): void {
  if (depth > SCHEMA_LIMITS.depth) {
    throw refuseSchema(undefined, "", `must not be nested deeper than ${SCHEMA_LIMITS.depth} levels`);
  }
  for (const [name, value] of Object.entries(container) as [string, unknown][]) {
    const place = pointerTo(pointer, name);
    if (typeof value === "object" && value !== null) checkInside(value, place, depth + 1, schemata);
    else if (typeof value === "number" && !Number.isFinite(value)) {
      throw refuseSchema(schemata, place, "must be a number that a double can hold, up to 1.79e308");
    }
  }
}

const DRAFT_07 = /^https?:\/\/json-schema\.org\/draft-07\/schema#?$/;

/** Refuses another dialect, and values that Ajv could take from the payload. */
export function refuseUnsafe(document: JsonObject, schema: JsonObject, pointer: string): void {
  const { $schema: dialect } = schema;
  if (typeof dialect === "string" && !DRAFT_07.test(dialect)) {
    const message =
      "names another dialect; schemas are JSON Schema draft-07 (http://json-schema.org/draft-07/schema#)";
    throw refuseSchema(document, `${pointer}/$schema`, message, dialect);
  }
  for (const [keyword, value] of Object.entries(schema)) {
    if (isAnnotation(keyword) || !isObject(value) || typeof value["$data"] !== "string") continue;
    const message =
      "is not part of draft-07 and cannot be used: a schema cannot take its values from the payload";
    throw refuseSchema(document, `${pointerTo(pointer, keyword)}/$data`, message, value["$data"]);
  }
}
