import { isDeepStrictEqual } from "node:util";
import { CHECK_LIMITS } from "../domain/action.ts";
import type { ActionRevision, Admission, Schemata } from "../domain/action.ts";
import type { CompatibilityMode, CompatibilityRule, RevisionBreak } from "../domain/compatibility.ts";
import { comparing } from "../schema/compatibility/compare.ts";
import type { StoredAction } from "../store/actions.ts";
import type { Store } from "../store/store.ts";
import type { SchemaTurns } from "./schema-work.ts";

/** Revisions read at once, each of up to 64 KiB. */
const READ_REVISIONS = 10;

/**
 * What a schema would break of an action, under a rule. A break of several revisions is told once, of the newest of them.
 */
export async function breaksOf(
  store: Store,
  turns: SchemaTurns,
  stored: StoredAction,
  next: Schemata,
  { compatibility: mode, compatibility_against: against }: CompatibilityRule,
): Promise<readonly RevisionBreak[]> {
  if (mode === "none") return [];
  const found = new Map<string, RevisionBreak>();
  let compared: Schemata | undefined;
  const revisions = against === "last" ? [stored] : revisionsOf(store, stored.action);
  for await (const { revision, schemata } of revisions) {
    // An action that moved to another application has the same schema under two numbers.
    if (compared !== undefined && isDeepStrictEqual(compared, schemata)) continue;
    compared = schemata;
    const { breaks } = await turns.goOn(comparing(schemata, next, { mode }));
    for (const broken of breaks) {
      const key = JSON.stringify([broken.side, broken.pointer, broken.message]);
      if (!found.has(key)) found.set(key, { revision, ...broken });
    }
    if (found.size >= CHECK_LIMITS.breaks) break;
  }
  return [...found.values()].slice(0, CHECK_LIMITS.breaks);
}

/** How a schema that is applied comes to replace the one in force. What it was let through with is counted as well. */
export async function admissionOf(
  turns: SchemaTurns,
  stored: StoredAction,
  next: Schemata,
  compatibility: CompatibilityMode,
): Promise<Admission> {
  if (compatibility === "full" || isDeepStrictEqual(stored.schemata, next))
    return { compatibility, breaks: 0 };
  const { total: breaks } = await turns.goOn(comparing(stored.schemata, next, { mode: "full" }));
  return { compatibility, breaks };
}

/** Newest first. */
async function* revisionsOf(store: Store, action: string): AsyncGenerator<ActionRevision> {
  const limit = READ_REVISIONS;
  let after: number | undefined;
  for (;;) {
    const page = await store.listRevisions({ action, limit, ...(after === undefined ? {} : { after }) });
    yield* page;
    if (page.length < limit) return;
    after = page.at(-1)!.revision;
  }
}
