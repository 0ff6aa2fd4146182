import { EvregError, invalidField } from "../domain/error.ts";
import { shortened } from "./failure.ts";
import { fieldName, pathOf } from "./field-path.ts";
import type { FieldPath } from "./field-path.ts";

/** The member of a request that holds the schema; places in a schema are named from there: `schemata.properties.x`. */
export type SchemaMember = "schemata" | "filter";

/** A refused schema. It is `invalid` with the place in it, taken for that of an action until it is said where it stood. */
export class SchemaRefusal extends EvregError {
  readonly #place: { readonly path: FieldPath; readonly message: string; readonly value: unknown };

  constructor(path: FieldPath, message: string, value: unknown, member: SchemaMember = "schemata") {
    const { code, message: sentence, details } = invalidField(fieldName(path, member), message, value);
    super(code, sentence, details);
    this.#place = { path, message, value };
  }

  in(member: SchemaMember): SchemaRefusal {
    const { path, message, value } = this.#place;
    return new SchemaRefusal(path, message, value, member);
  }
}

export function refuseSchemaAt(path: FieldPath, message: string, value?: unknown): SchemaRefusal {
  return new SchemaRefusal(path, message, shortened(value));
}

/** The same for a place known as a JSON pointer into the document. */
export function refuseSchema(
  document: unknown,
  pointer: string,
  message: string,
  value?: unknown,
): SchemaRefusal {
  return refuseSchemaAt(pathOf(pointer, document), message, value);
}
