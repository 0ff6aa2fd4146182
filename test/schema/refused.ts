import { EvregError } from "../../src/domain/error.ts";
import { checkSchema } from "../../src/schema/check.ts";
import { compileSchema, type Validator } from "../../src/schema/validate/compile.ts";

/** What a document is refused with; fails when it is not. */
export function refused(schemata: unknown): { field: unknown; message: string } {
  try {
    checkSchema(schemata);
  } catch (error) {
    if (!(error instanceof EvregError)) throw error;
    if (error.code !== "invalid") throw error;
    return { field: error.details["field"], message: String(error.details["message"]) };
  }
  throw new Error(`accepted ${JSON.stringify(schemata).slice(0, 200)}`);
}

/** What is made of a schema; `undefined` where evreg takes none such, as with a reference to itself. */
export function ifTaken<T>(make: () => T): T | undefined {
  try {
    return make();
  } catch (error) {
    if (error instanceof EvregError) return undefined;
    throw error;
  }
}

/** A schema as the registry takes it: checked, then compiled. */
export function accepted(schemata: unknown): Validator {
  checkSchema(schemata);
  return compileSchema(schemata);
}
