import { parseScope } from "../domain/scope.ts";
import type { Evreg } from "../evreg.ts";

/** The applications that scopes are limited to and that no action and no subscription has, so far as can be told. */
export async function unknownApplications(evreg: Evreg, scopes: readonly string[]): Promise<string[]> {
  const named = new Set<string>();
  for (const scope of scopes) {
    const application = parseScope(scope)?.application;
    if (application !== undefined) named.add(application);
  }
  const unknown: string[] = [];
  for (const application of named) {
    if ((await evreg.actions.list({ application })).data.length > 0) continue;
    if ((await evreg.subscriptions.list({ application })).data.length > 0) continue;
    unknown.push(application);
  }
  return unknown;
}
