import { createHash } from "node:crypto";
import { isDeepStrictEqual } from "node:util";
import { CHECK_LIMITS } from "../domain/action.ts";
import type { ActionRevision, Admission, Schemata } from "../domain/action.ts";
import { sidesOf } from "../domain/compatibility.ts";
import type {
  CompatibilityMode,
  CompatibilityRule,
  RevisionBreak,
  SchemaBreak,
} from "../domain/compatibility.ts";
import { comparing } from "../schema/compatibility/compare.ts";
import type { StoredAction } from "../store/actions.ts";
import type { Store } from "../store/store.ts";
import { countRevision, Inheritance, toldAgainst } from "./older-breaks.ts";
import type { FoundBreak } from "./older-breaks.ts";
import type { SchemaTurns } from "./schema-work.ts";

/** Revisions read at once, each of up to 256 KiB, of which the thread takes over one in 5 ms at the most. */
const READ_REVISIONS = 3;
/**
 * Steps that comparing with all revisions may take: some 4 s. They are enough for 150 schemas of 42 KB each, three that were
 * made to be hard, and thousands of small ones.
 */
const STEPS_OVER_ALL = 20_000_000;
/** Beside what the comparison counts: to begin one, and to read a character of either schema. */
const STEPS_PER_COMPARISON = 1_000;
/** To tell that a schema has been compared already takes a tenth of reading it. */
const CHARACTERS_PER_STEP = 10;

/**
 * What a schema would break of an action, under a rule. A break of several revisions is told once, of the newest of them,
 * and says which they are where the last is not among them. Where all revisions are asked about and not all are compared, a
 * break of each side tells which are left.
 * @param stepsOverAll how much work all revisions may take; the answer does not depend on the machine
 */
export async function breaksOf(
  store: Store,
  turns: SchemaTurns,
  stored: StoredAction,
  next: Schemata,
  { compatibility: mode, compatibility_against: against }: CompatibilityRule,
  stepsOverAll = STEPS_OVER_ALL,
): Promise<readonly RevisionBreak[]> {
  if (mode === "none") return [];
  const found = new Map<string, FoundBreak>();
  const inheritance = new Inheritance(turns, stored, mode);
  // An action goes back to an earlier schema, or moves to another application: the same schema under two numbers.
  const compared = new Map<string, readonly string[]>();
  const nextLength = JSON.stringify(next).length;
  let left = stepsOverAll;
  const revisions = against === "last" ? [stored] : revisionsOf(store, stored.action);
  const told = () => [...found.values()].map((one) => toldAgainst(stored, mode, one));
  for await (const { revision, schemata } of revisions) {
    if (left <= 0 || found.size >= CHECK_LIMITS.breaks) {
      return [...told(), ...sidesOf(mode).map((side) => notCompared(side, revision, found.size))];
    }
    const text = JSON.stringify(schemata);
    left -= text.length / CHARACTERS_PER_STEP;
    const digest = createHash("sha256").update(text).digest("base64");
    const known = compared.get(digest);
    for (const key of known ?? []) countRevision(found.get(key)!, revision);
    if (known !== undefined) continue;
    const { breaks, steps } = await turns.goOn(comparing(schemata, next, { mode }));
    left -= STEPS_PER_COMPARISON + text.length + nextLength + steps;
    const keyed = new Map(breaks.map((broken) => [keyOf(broken), broken]));
    compared.set(digest, [...keyed.keys()]);
    const isNew = [...keyed.keys()].some((key) => !found.has(key));
    const isInherited = isNew ? await inheritance.of(revision, schemata) : () => false;
    for (const [key, broken] of keyed) {
      const before = found.get(key);
      if (before !== undefined) countRevision(before, revision);
      else found.set(key, { broken, revisions: [revision], count: 1, isInherited: isInherited(broken) });
    }
  }
  return told();
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
      : "Mend those and check again, or create the schema as a new version of the action.";
  return { revision, side, pointer: "", message, remedy, certainty: "cannot_prove" };
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
