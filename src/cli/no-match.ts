import { EvregError } from "../domain/error.ts";
import type { Evreg } from "../evreg.ts";
import { withMeantAction } from "./meant-action.ts";

interface Narrowing {
  readonly action?: string | undefined;
  readonly event?: number | undefined;
  readonly subscription?: number | undefined;
}

/**
 * What to tell of a listing that came out empty: a name or number that nothing has looks the same, and is rather a mistake.
 * @param sentence that nothing matches
 */
export async function noMatch(sentence: string, evreg: Evreg, query: Narrowing): Promise<string> {
  const { action, event, subscription } = query;
  try {
    if (action !== undefined) await evreg.actions.get(action);
    if (event !== undefined) await evreg.events.get(event);
    if (subscription !== undefined) await evreg.subscriptions.get(subscription);
  } catch (error) {
    if (error instanceof EvregError && error.code === "not_found") {
      const told = await withMeantAction(error, evreg);
      return `${sentence} ${told instanceof EvregError ? told.message : error.message}`;
    }
    // Not what was asked for: the listing itself went well.
  }
  return sentence;
}
