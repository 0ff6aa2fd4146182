import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import {
  type ActionRevision,
  type Admission,
  CHECK_LIMITS,
  type CompatibilityMode,
  type CompatibilityRule,
  type RevisionBreak,
  type SchemaBreak,
  type Schemata,
  type SchemaWarning,
  sidesOf,
} from "../domain/action.ts";
import type { Verdict } from "../schema/compatibility/compare.ts";
import type { CatalogStore, StoredAction } from "../store/catalog.ts";

/** Revisions read at once, each of up to 256 KiB, one of which may take the thread 5 ms. */
const READ_REVISIONS = 3;
/** For all revisions: some 4 s, enough for 150 schemas of 42 KB, or three that were made to be hard. */
const STEPS_OVER_ALL = 20_000_000;
/** To begin a comparison. Reading a character of either schema is one step more. */
const STEPS_PER_COMPARISON = 1_000;
/** To find a schema that was compared already takes a tenth of reading it. */
const CHARACTERS_PER_STEP = 10;

/** Compares a schema with one that is to replace it and was checked. */
export type Compare = (older: Schemata, newer: Schemata, mode: CompatibilityMode) => Promise<Verdict>;

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
  const found = new Map<string, FoundBreak>();
  // A schema has two numbers when an action returns to it, or moves to another application.
  const compared = new Map<string, readonly string[]>();
  const nextLength = JSON.stringify(next).length;
  let remaining = stepsOverAll;
  const revisions = against === "last" ? [stored] : revisionsOf(catalog, stored.action);
  const described = () => [...found.values()].map((one) => describeBreak(stored, one));
  for await (const { revision, schemata } of revisions) {
    if (remaining <= 0 || found.size >= CHECK_LIMITS.breaks) {
      return [...described(), ...sidesOf(mode).map((side) => notCompared(side, revision, found.size))];
    }
    const text = JSON.stringify(schemata);
    remaining -= text.length / CHARACTERS_PER_STEP;
    const digest = createHash("sha256").update(text).digest("base64");
    const known = compared.get(digest);
    for (const key of known ?? []) countRevision(found.get(key)!, revision);
    if (known !== undefined) continue;
    const { breaks, steps } = await compare(schemata, next, mode);
    remaining -= STEPS_PER_COMPARISON + text.length + nextLength + steps;
    const keyed = new Map(breaks.map((broken) => [keyOf(broken), broken]));
    compared.set(digest, [...keyed.keys()]);
    for (const [key, broken] of keyed) {
      const before = found.get(key);
      if (before !== undefined) countRevision(before, revision);
      else found.set(key, { broken, revisions: [revision], count: 1 });
    }
  }
  return described();
}

function keyOf({ side, pointer, message }: SchemaBreak): string {
  return JSON.stringify([side, pointer, message]);
}

/** Stands for the revisions up to this one. */
function notCompared(side: SchemaBreak["side"], revision: number, breaks: number): RevisionBreak {
  const which = revision === 1 ? "Revision 1 was" : `Revisions 1 to ${revision} were`;
  const reason =
    breaks < CHECK_LIMITS.breaks
      ? "with all there were it takes too many steps"
      : `later ones have ${breaks.toLocaleString("en")} breaks already`;
  const unknown =
    side === "producer"
      ? "all a producer may send by them is still accepted"
      : "a consumer written for them understands all that may come";
  const message = `${which} not compared: ${reason}. It cannot be proven that ${unknown}.`;
  const remedy =
    breaks < CHECK_LIMITS.breaks
      ? "Create the schema as a new version of the action, or have it compared with the last revision only (compatibility_against: last)."
      : "Fix those and check again, or create the schema as a new version of the action.";
  return { revision, side, pointer: "", message, remedy, certainty: "cannot_prove" };
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
  const limit = READ_REVISIONS;
  let page = await catalog.listRevisions({ action, limit });
  yield* page;
  while (page.length === limit) {
    page = await catalog.listRevisions({ action, limit, after: page.at(-1)!.revision });
    yield* page;
  }
}

/** Revisions named in a sentence before they are only counted. */
const MAX_NAMED = 5;

interface FoundBreak {
  readonly broken: SchemaBreak;
  /** The newest of those it breaks with, newest first. */
  readonly revisions: number[];
  count: number;
}

/** Counts one more, older revision that it breaks with. */
function countRevision(found: FoundBreak, revision: number): void {
  found.count += 1;
  if (found.revisions.length < MAX_NAMED) found.revisions.push(revision);
}

function describeBreak(last: StoredAction, { broken, revisions, count }: FoundBreak): RevisionBreak {
  const revision = revisions[0]!;
  if (revision === last.revision) return { revision, ...broken };
  return { revision, ...broken, message: `Against ${named(revisions, count)}: ${broken.message}` };
}

/** For an action that is to be compared with all its revisions, while its own schema breaks with some. */
export function historyWarnings(breaks: readonly RevisionBreak[]): SchemaWarning[] {
  const revisions = [...new Set(breaks.map(({ revision }) => revision))];
  if (revisions.length === 0) return [];
  const message = `the schema in force breaks with ${named(revisions, revisions.length)} already, so that a change which leaves it so is refused when it is compared with all revisions; compatibility_against: last (--against last) compares with the last one only`;
  return [{ pointer: "", message }];
}

function named(revisions: readonly number[], count: number): string {
  const names = revisions.slice(0, MAX_NAMED).map((revision) => revision.toLocaleString("en"));
  const more = count - names.length;
  if (more > 0) names.push(`${more.toLocaleString("en")} more`);
  const last = names.pop()!;
  return names.length === 0 ? `revision ${last}` : `revisions ${names.join(", ")} and ${last}`;
}
