import { EvregError } from "../../domain/error.ts";
import { checkSchema } from "../../schema/check.ts";
import { pathNamed } from "../../schema/field-path.ts";
import type { Problem } from "./document.ts";
import type { Values } from "./members.ts";
import type { Declared } from "./record.ts";

/** The members that are JSON Schemas. */
const SCHEMAS = ["schemata", "filter"];

/**
 * What keeps the schemas that are to be sent from being some. Those that the service has already are not looked at again:
 * compiling hundreds takes longer than all the rest of a plan that changes nothing.
 */
export function schemaProblems(sent: Values, { place }: Declared): Problem[] {
  const problems: Problem[] = [];
  for (const member of SCHEMAS) {
    const schema = sent[member] ?? null;
    if (schema === null) continue;
    try {
      checkSchema(schema);
    } catch (error) {
      if (!(error instanceof EvregError)) throw error;
      const { field, message } = error.details;
      const name = String(field).replace(/^schemata/, member);
      problems.push({ place: place(pathNamed(name)), message: `${name}: ${String(message)}` });
    }
  }
  return problems;
}
