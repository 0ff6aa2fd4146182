import type { Schemata, SchemaWarning } from "./action.ts";

/** What becomes of payloads that do not conform, by the member that holds the schema. */
const NONE_CONFORMS = { schemata: "nothing can be published", filter: "nothing is sent" } as const;

export type SchemaHolder = keyof typeof NONE_CONFORMS;

/** A schema of what no payload is: legal, and surely a slip. */
export function payloadTypeWarnings(schemata: Schemata, member: SchemaHolder): readonly SchemaWarning[] {
  const { $ref: reference, type } = schemata;
  // Beside a $ref the type is ignored, which is a warning of its own.
  if (type === undefined || reference !== undefined || [type].flat().includes("object")) return [];
  const message = `every payload is an object, so none conforms to the type ${JSON.stringify(type)} and ${NONE_CONFORMS[member]}; make it "object"`;
  return [{ pointer: "/type", message }];
}
