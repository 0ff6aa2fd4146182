import { nearest } from "../config/nearest.ts";
import { EvregError } from "../domain/error.ts";
import type { Evreg } from "../evreg.ts";

// Local or remote, it is told in the same words.
const NO_ACTION = /^There is no action (".+")\.$/;

/** An error that tells of an action there is none of, for a person, with the one that was probably meant; any other as it came. */
export async function withMeantAction(error: unknown, evreg: Evreg): Promise<unknown> {
  if (!(error instanceof EvregError) || error.code !== "not_found") return error;
  const quoted = NO_ACTION.exec(error.message)?.[1];
  if (quoted === undefined) return error;
  try {
    const { data } = await evreg.actions.list();
    const names = data.map(({ action }) => action);
    const meant = nearest(String(JSON.parse(quoted)), names);
    if (meant === undefined) return error;
    const message = `${error.message} Did you mean ${meant}?`;
    return new EvregError(error.code, message, error.details, { cause: error });
  } catch {
    // A token may publish and not read; what went wrong first is told all the same.
    return error;
  }
}
