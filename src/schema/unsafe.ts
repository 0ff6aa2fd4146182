import { pointerTo } from "./field-path.ts";
import { isAnnotation, isObject } from "./keywords.ts";
import type { JsonObject } from "./keywords.ts";
import { refuseSchema } from "./refusal.ts";

const DRAFT_07 = /^https?:\/\/json-schema\.org\/draft-07\/schema#?$/;

/**
 * Refuses what belongs to other dialects and would mean something else there, or make a check unsafe.
 * @throws `invalid` with the place
 */
export function refuseUnsafe(document: JsonObject, schema: JsonObject, pointer: string): void {
  const dialect = schema["$schema"];
  if (typeof dialect === "string" && !DRAFT_07.test(dialect)) {
    const message =
      "names another dialect; schemas are JSON Schema draft-07 (http://json-schema.org/draft-07/schema#)";
    throw refuseSchema(document, `${pointer}/$schema`, message, dialect);
  }
  if (schema["$async"] !== undefined) {
    const message = "is not part of draft-07 and cannot be used: payloads are checked at once";
    throw refuseSchema(document, `${pointer}/$async`, message, schema["$async"]);
  }
  for (const [keyword, value] of Object.entries(schema)) {
    if (isAnnotation(keyword) || !isObject(value) || typeof value["$data"] !== "string") continue;
    const message =
      "is not part of draft-07 and cannot be used: a schema cannot take its values from the payload";
    throw refuseSchema(document, pointerTo(pointerTo(pointer, keyword), "$data"), message, value["$data"]);
  }
}
