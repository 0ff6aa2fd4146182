import type { Schemata, SchemaWarning } from "../../domain/action.ts";
import { EvregError } from "../../domain/error.ts";
import { payloadTypeWarnings } from "../../domain/payload-type.ts";
import { checkSchema } from "../../schema/check.ts";
import { pathNamed } from "../../schema/field-path.ts";
import type { Problem } from "./document.ts";
import type { Values } from "./members.ts";
import type { Declared } from "./record.ts";

/** The members that are JSON Schemas. */
const SCHEMAS = ["schemata", "filter"] as const;

/** What a schema says to no effect, and where in the files. */
export interface PlacedWarning extends SchemaWarning {
  readonly place: string;
}

/**
 * What keeps the schemas that are to be sent from being some, and what they say to no effect. Those that the service has
 * already are not looked at again: compiling hundreds takes longer than all the rest of a plan that changes nothing.
 */
export function schemaProblems(
  sent: Values,
  { place }: Declared,
): { readonly problems: readonly Problem[]; readonly warnings: readonly PlacedWarning[] } {
  const problems: Problem[] = [];
  const warnings: PlacedWarning[] = [];
  for (const member of SCHEMAS) {
    const schema = sent[member] ?? null;
    if (schema === null) continue;
    try {
      const found = [
        ...payloadTypeWarnings(schema as Schemata, member),
        ...checkSchema(schema, member).warnings,
      ];
      warnings.push(
        ...found.map(({ pointer, message }) => ({
          pointer,
          message,
          place: place([member, ...stepsOf(pointer)]),
        })),
      );
    } catch (error) {
      if (!(error instanceof EvregError)) throw error;
      const { field, message } = error.details;
      const name = String(field);
      problems.push({ place: place(pathNamed(name)), message: `${name}: ${String(message)}` });
    }
  }
  return { problems, warnings };
}

/** Of a JSON pointer. */
function stepsOf(pointer: string): readonly string[] {
  return pointer
    .split("/")
    .slice(1)
    .map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"));
}
