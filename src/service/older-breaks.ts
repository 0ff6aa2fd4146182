import type { Schemata, SchemaWarning } from "../domain/action.ts";
import type { CompatibilityMode, RevisionBreak, SchemaBreak } from "../domain/compatibility.ts";
import { comparing } from "../schema/compatibility/compare.ts";
import type { StoredAction } from "../store/actions.ts";
import type { SchemaTurns } from "./schema-work.ts";

/** Steps that may be taken for the advice, beside those for the breaks themselves: some 1 s. */
const STEPS_FOR_ADVICE = 5_000_000;
const STEPS_PER_COMPARISON = 1_000;
/** Revisions named in a sentence before they are only counted. */
const MOST_NAMED = 5;

export interface FoundBreak {
  readonly broken: SchemaBreak;
  /** The newest of those it breaks with, newest first, and how many there are. */
  readonly revisions: number[];
  count: number;
  /** The last revision breaks with the newest of them in the same way. */
  readonly isInherited: boolean;
}

/** Counts one more, older revision that it breaks with. */
export function countRevision(found: FoundBreak, revision: number): void {
  found.count += 1;
  if (found.revisions.length < MOST_NAMED) found.revisions.push(revision);
}

/** Tells what an older revision promised that the last one gave up already: to mend that is no matter of a change. */
export class Inheritance {
  readonly #turns: SchemaTurns;
  readonly #last: StoredAction;
  readonly #mode: CompatibilityMode;
  #left = STEPS_FOR_ADVICE;

  constructor(turns: SchemaTurns, last: StoredAction, mode: CompatibilityMode) {
    this.#turns = turns;
    this.#last = last;
    this.#mode = mode;
  }

  /** @returns for a break with the revision, whether the last one breaks with it so; `false` when the steps are over */
  async of(revision: number, schemata: Schemata): Promise<(broken: SchemaBreak) => boolean> {
    if (revision === this.#last.revision || this.#left <= 0) return () => false;
    const last = this.#last.schemata;
    const { breaks, steps } = await this.#turns.goOn(comparing(schemata, last, { mode: this.#mode }));
    this.#left -= STEPS_PER_COMPARISON + JSON.stringify([schemata, last]).length + steps;
    const places = new Set(breaks.map(placeOf));
    return (broken) => places.has(placeOf(broken));
  }
}

/** Breaks of what is required have their place in common, and each its own sentence. */
function placeOf({ side, pointer, message }: SchemaBreak): string {
  return JSON.stringify([side, pointer, pointer.endsWith("/required") ? message : ""]);
}

export function toldAgainst(
  last: StoredAction,
  mode: CompatibilityMode,
  { broken, revisions, count, isInherited }: FoundBreak,
): RevisionBreak {
  const revision = revisions[0]!;
  if (revision === last.revision) return { revision, ...broken };
  const message = `Against ${named(revisions, count)}: ${broken.message}`;
  return { revision, ...broken, message, ...(isInherited ? { remedy: advice(last, mode, revision) } : {}) };
}

/** What can be done where the history disagrees with itself: to leave the place as it is helps nobody. */
function advice({ revision: last }: StoredAction, mode: CompatibilityMode, revision: number): string {
  const again = mode === "full" ? "" : `say again what revision ${revision} says, `;
  return `Revision ${last} breaks with revision ${revision} here already, so the history disagrees with itself: ${again}have changes compared with the last revision only (compatibility_against: last, --against last), or create the schema as a new version of the action.`;
}

/** What to know of an action that is to be compared with all its revisions, where its own schema breaks with some. */
export function historyWarnings(breaks: readonly RevisionBreak[]): SchemaWarning[] {
  const revisions = [...new Set(breaks.map(({ revision }) => revision))];
  if (revisions.length === 0) return [];
  const message = `the schema in force breaks with ${named(revisions, revisions.length)} already, so that a change which leaves it so is refused when it is compared with all revisions; compatibility_against: last (--against last) compares with the last one only`;
  return [{ pointer: "", message }];
}

function named(revisions: readonly number[], count: number): string {
  const names = revisions.slice(0, MOST_NAMED).map((revision) => revision.toLocaleString("en"));
  const more = count - names.length;
  if (more > 0) names.push(`${more.toLocaleString("en")} more`);
  const last = names.pop()!;
  return names.length === 0 ? `revision ${last}` : `revisions ${names.join(", ")} and ${last}`;
}
