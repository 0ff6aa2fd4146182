import { isDeepStrictEqual } from "node:util";
import {
  type ActionRevision,
  type Admission,
  CHECK_LIMITS,
  type CompatibilityMode,
  type CompatibilityRule,
  notCompared,
  type RevisionBreak,
  type SchemaBreak,
  type Schemata,
  sidesOf,
} from "../domain/action.ts";
import type { ComparisonResult } from "../schema/compatibility/compare.ts";
import type { CatalogStore, StoredAction } from "../store/catalog.ts";
import { omitUndefined, pagesOf } from "./requests.ts";

/** Revisions read at once, each of up to 256 KiB, one of which may take the thread 5 ms. */
const READ_REVISIONS = 3;
/** The steps for all revisions together: some 4 s, enough for 150 schemas of 42 KB, or three that were made to be hard. */
const STEPS_OVER_ALL = 20_000_000;
/** What it takes to begin a comparison. Reading a character of either schema is one step more. */
const STEPS_PER_COMPARISON = 1_000;

/** Compares a schema with one that is to replace it and was checked. */
export type Compare = (
  older: Schemata,
  newer: Schemata,
  mode: CompatibilityMode,
) => Promise<ComparisonResult>;

/**
 * What a schema would break of an action, under a rule. A break with several revisions is reported once, for the newest of
 * them. When not all revisions could be compared, a break of each side says which were not.
 * @param stepsOverAll for all revisions together; the result does not depend on the machine
 */
export async function breaksOf(
  catalog: CatalogStore,
  compare: Compare,
  stored: StoredAction,
  next: Schemata,
  { compatibility: mode, compatibility_against: against }: CompatibilityRule,
  stepsOverAll = STEPS_OVER_ALL,
): Promise<readonly RevisionBreak[]> {
  if (mode === "none") return [];
  const byKey = new Map<string, RevisionBreak>();
  const nextLength = JSON.stringify(next).length;
  let remaining = stepsOverAll;
  const revisions = against === "last" ? [stored] : revisionsOf(catalog, stored.action);
  for await (const { revision, schemata } of revisions) {
    if (remaining <= 0 || byKey.size >= CHECK_LIMITS.breaks) {
      return [...byKey.values(), ...sidesOf(mode).map((side) => revisionsLeftOut(side, revision))];
    }
    const { breaks, steps } = await compare(schemata, next, mode);
    remaining -= STEPS_PER_COMPARISON + JSON.stringify(schemata).length + nextLength + steps;
    for (const one of breaks) {
      const key = keyOf(one);
      if (byKey.has(key)) continue;
      const message =
        revision === stored.revision ? one.message : `Against revision ${revision}: ${one.message}`;
      byKey.set(key, { revision, ...one, message });
    }
  }
  return [...byKey.values()];
}

function keyOf({ side, pointer, message }: SchemaBreak): string {
  return JSON.stringify([side, pointer, message]);
}

/** Stands for the revisions up to this one. */
function revisionsLeftOut(side: SchemaBreak["side"], revision: number): RevisionBreak {
  const which = revision === 1 ? "Revision 1 was" : `Revisions 1 to ${revision} were`;
  const most = CHECK_LIMITS.breaks.toLocaleString("en");
  const change = `${which} not compared: it takes too many steps, or later ones have ${most} breaks already.`;
  const remedy =
    "Fix what else breaks and check again, create the schema as a new version of the action, or have it compared with the last revision only (compatibility_against: last).";
  return { revision, ...notCompared(side, change, remedy) };
}

/** How a schema comes to replace the one in force. Breaks that were allowed are counted too. */
export async function admissionOf(
  compare: Compare,
  stored: StoredAction,
  next: Schemata,
  compatibility: CompatibilityMode,
): Promise<Admission> {
  const isUnbroken = compatibility === "full" || isDeepStrictEqual(stored.schemata, next);
  if (isUnbroken) return { compatibility, breaks: 0 };
  const { total: breaks } = await compare(stored.schemata, next, "full");
  return { compatibility, breaks };
}

/** Newest first. */
async function* revisionsOf(catalog: CatalogStore, action: string): AsyncGenerator<ActionRevision> {
  const pages = pagesOf(READ_REVISIONS, (last: ActionRevision | undefined) =>
    catalog.listRevisions(omitUndefined({ action, limit: READ_REVISIONS, after: last?.revision })),
  );
  for await (const page of pages) yield* page;
}
