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
  type SchemaWarning,
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
  const byKey = new Map<string, FoundBreak>();
  const nextLength = JSON.stringify(next).length;
  let remaining = stepsOverAll;
  const revisions = against === "last" ? [stored] : revisionsOf(catalog, stored.action);
  const described = () => [...byKey.values()].map((one) => describeBreak(stored.revision, one));
  for await (const { revision, schemata } of revisions) {
    if (remaining <= 0 || byKey.size >= CHECK_LIMITS.breaks) {
      return [...described(), ...sidesOf(mode).map((side) => revisionsLeftOut(side, revision))];
    }
    const { breaks, steps } = await compare(schemata, next, mode);
    remaining -= STEPS_PER_COMPARISON + JSON.stringify(schemata).length + nextLength + steps;
    for (const [key, broken] of new Map(breaks.map((one) => [keyOf(one), one]))) {
      const before = byKey.get(key);
      if (before === undefined) byKey.set(key, { broken, revision, older: 0 });
      else before.older += 1;
    }
  }
  return described();
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

interface FoundBreak {
  readonly broken: SchemaBreak;
  /** The newest that it breaks with, and how many older ones. */
  readonly revision: number;
  older: number;
}

function describeBreak(last: number, { broken, revision, older }: FoundBreak): RevisionBreak {
  if (revision === last) return { revision, ...broken };
  const message = `Against ${named(revision, older)}: ${broken.message}`;
  const remedy = `${broken.remedy} Where revision ${last} breaks with revision ${revision} here already, have changes compared with the last revision only (compatibility_against: last, --against last), or create the schema as a new version of the action.`;
  return { revision, ...broken, message, remedy };
}

/** What is said of an action that is to be compared with all its revisions, while its own schema breaks with some. */
export function historyWarnings(breaks: readonly RevisionBreak[]): SchemaWarning[] {
  const revisions = new Set(breaks.map(({ revision }) => revision));
  const [newest] = revisions;
  if (newest === undefined) return [];
  const message = `the schema in force breaks with ${named(newest, revisions.size - 1)} already, so that a change which leaves it so is refused when it is compared with all revisions; compatibility_against: last (--against last) compares with the last one only`;
  return [{ pointer: "", message }];
}

/** `revision 8 and 3 older ones` */
function named(revision: number, older: number): string {
  const more = older === 0 ? "" : ` and ${older.toLocaleString("en")} older ${older === 1 ? "one" : "ones"}`;
  return `revision ${revision}${more}`;
}
