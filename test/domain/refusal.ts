import { EvregError } from "../../src/domain/error.ts";

/** What a call is refused with; fails where it is not. */
export function refusal(call: () => unknown): EvregError {
  try {
    call();
  } catch (error) {
    if (error instanceof EvregError) return error;
    throw error;
  }
  throw new Error("accepted");
}
