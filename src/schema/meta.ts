import { Ajv } from "ajv";
import type { ValidateFunction } from "ajv";
import { refillBudget } from "./budget.ts";
import { faultOf } from "./fault.ts";
import { pathOf, valueAt } from "./field-path.ts";
import { isObject, type JsonObject } from "./keywords.ts";
import { forget } from "./memo.ts";
import { refuseSchemaAt } from "./refusal.ts";
import { VALUE_KEYWORDS } from "./value-keywords.ts";

let draft07: ValidateFunction | undefined;

/**
 * Holds one schema of a document to the meta-schema of draft-07.
 * @throws `invalid` with the place
 */
export function checkMeta(document: unknown, pointer: string): void {
  draft07 ??= compileMeta();
  const place = pathOf(pointer, document);
  const schema = valueAt(place, document);
  refillBudget();
  try {
    if (draft07(schema)) return;
  } finally {
    forget();
  }
  const fault = faultOf(draft07.errors ?? [], schema);
  throw refuseSchemaAt([...place, ...fault.path], fault.message, fault.value);
}

/**
 * Ajv's copy of the meta-schema is older than the one in force, which has what the draft only recommends left out (an
 * `enum` with a value, none twice). A list of no places is legal by the draft's text.
 */
function compileMeta(): ValidateFunction {
  const ajv = new Ajv({ strict: false, validateSchema: false, logger: false, ownProperties: true });
  // Ajv's own compares each value of an enum with each other, which takes some 40 ms for a thousand objects.
  const unique = VALUE_KEYWORDS.find(({ keyword }) => keyword === "uniqueItems")!;
  ajv.removeKeyword("uniqueItems").addKeyword(unique);
  const known = ajv.schemas["http://json-schema.org/draft-07/schema"]?.schema;
  if (!isObject(known)) throw new Error("Ajv came without the meta-schema of draft-07.");
  const { $id: _, ...meta } = known;
  const properties = {
    ...(known["properties"] as JsonObject),
    enum: { type: "array" },
    items: { anyOf: [{ $ref: "#" }, { type: "array", items: { $ref: "#" } }] },
  };
  return ajv.compile({ ...meta, properties });
}
