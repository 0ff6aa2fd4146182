import { EvregError } from "../../domain/error.ts";
import type { Failure } from "../validate/errors.ts";

/** Where chance found nothing: why the last try did not conform, and what to do. */
export function noSample(action: string, failure: Failure | undefined): EvregError {
  const last =
    failure === undefined
      ? ""
      : ` The last one made failed: ${failure.field === "" ? "the payload" : failure.field} ${failure.message}.`;
  const message = `No payload that conforms to the schema of ${action} was found.${last} Put one into the schema as an example ("examples": [{…}]), at its root or where it is hard to meet, or write the payload yourself.`;
  return new EvregError("invalid", message, { action });
}
