import type { Schemata, SchemaWarning } from "../domain/action.ts";
import { checkingSchema } from "../schema/check.ts";
import type { SchemaTurns } from "./schema-work.ts";

/** What becomes of payloads that do not conform, by the member that holds the schema. */
const NONE_CONFORMS = { schemata: "nothing can be published", filter: "nothing is sent" } as const;

/**
 * What is legal in a schema and is probably a slip.
 * @throws `invalid` for what is no schema, with the place in that member
 * @throws `unavailable` when too many schemas wait to be looked at
 */
export async function schemaWarnings(
  turns: SchemaTurns,
  member: keyof typeof NONE_CONFORMS,
  schemata: Schemata,
): Promise<SchemaWarning[]> {
  const { warnings } = await turns.begin(checkingSchema(schemata, member));
  const { $ref: reference, type } = schemata;
  // Beside a $ref the type is ignored, which is a warning of its own.
  if (type === undefined || reference !== undefined || [type].flat().includes("object")) return warnings;
  const message = `every payload is an object, so none conforms to the type ${JSON.stringify(type)} and ${NONE_CONFORMS[member]}; make it "object"`;
  return [{ pointer: "/type", message }, ...warnings];
}
