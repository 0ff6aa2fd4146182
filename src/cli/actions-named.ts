import type { Action } from "../domain/action.ts";
import type { Evreg } from "../evreg.ts";

/** The actions of those names, or all that may be read when there are none. `not_found`. */
export async function actionsNamed(evreg: Evreg, names: readonly string[]): Promise<readonly Action[]> {
  if (names.length === 0) return (await evreg.actions.list()).data;
  const actions: Action[] = [];
  for (const name of new Set(names)) actions.push((await evreg.actions.get(name)).data);
  return actions;
}
