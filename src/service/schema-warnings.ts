import type { Schemata, SchemaWarning } from "../domain/action.ts";
import { payloadTypeWarnings, type SchemaHolder } from "../domain/payload-type.ts";
import { checkingSchema } from "../schema/check.ts";
import type { SchemaTurns } from "./schema-work.ts";

/**
 * What is legal in a schema and is probably a slip.
 * @throws `invalid` for what is no schema, with the place in that member
 * @throws `unavailable` when too many schemas wait to be looked at
 */
export async function schemaWarnings(
  turns: SchemaTurns,
  member: SchemaHolder,
  schemata: Schemata,
): Promise<SchemaWarning[]> {
  const { warnings } = await turns.begin(checkingSchema(schemata, member));
  return [...payloadTypeWarnings(schemata, member), ...warnings];
}
