import type { Schemata, SchemaWarning } from "../domain/action.ts";
import { checkSchema } from "../schema/check.ts";

/**
 * What is probably a slip in the schema of an action.
 * @throws `invalid` for what is no schema
 */
export function warningsFor(schemata: Schemata): SchemaWarning[] {
  const { warnings } = checkSchema(schemata);
  const { $ref: reference, type } = schemata;
  // Beside a $ref the type is ignored, which is a warning of its own.
  if (type === undefined || reference !== undefined || [type].flat().includes("object")) return warnings;
  const message = `every payload is an object, so none conforms to the type ${JSON.stringify(type)} and nothing can be published; make it "object"`;
  return [{ pointer: "/type", message }, ...warnings];
}
