import { invalidField } from "../domain/error.ts";
import type { EvregError } from "../domain/error.ts";
import { shortened } from "./failure.ts";
import { fieldName, pathOf } from "./field-path.ts";
import type { FieldPath } from "./field-path.ts";

/** The member of an action that holds the schema; places in a schema are named from there: `schemata.properties.x`. */
const MEMBER = "schemata";

/** A refused schema, as `invalid` with the place in it. */
export function refuseSchemaAt(path: FieldPath, message: string, value?: unknown): EvregError {
  return invalidField(fieldName(path, MEMBER), message, shortened(value));
}

/** The same for a place known as a JSON pointer into the document. */
export function refuseSchema(
  document: unknown,
  pointer: string,
  message: string,
  value?: unknown,
): EvregError {
  return refuseSchemaAt(pathOf(pointer, document), message, value);
}
