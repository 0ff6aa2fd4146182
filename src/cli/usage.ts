import { EvregError } from "../domain/error.ts";

/** A mistake on the command line: exit code 2, and a pointer to the help behind the message. */
export function usage(message: string, details: Record<string, unknown> = {}): EvregError {
  return new EvregError("usage", message, details);
}
