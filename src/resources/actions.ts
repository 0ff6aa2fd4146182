import type { Column } from "../cli/io/table.ts";
import { printableJson, printableLine } from "../cli/io/text.ts";
import { type Action, type ActionRevision, actionState } from "../domain/action.ts";
import type { Difference } from "../schema/pointers.ts";

export const ACTION_LIST: readonly Column<Action>[] = [
  { title: "ACTION", of: (action) => action.action, shrinkTo: 16, whole: true },
  { title: "APPLICATION", of: (action) => action.application, shrinkTo: 8 },
  { title: "REVISION", of: (action) => action.revision, align: "right" },
  { title: "STATE", of: actionState, tone: actionTone },
  { title: "MODE", of: modeOf },
  { title: "CREATED", of: (action) => action.timestamped, spare: 1, time: true },
];

export const ACTION_RECORD: readonly Column<Action>[] = [
  { title: "Action", of: (action) => action.action },
  { title: "Application", of: (action) => action.application },
  { title: "ID", of: (action) => action.rowid },
  { title: "Revision", of: (action) => action.revision },
  { title: "State", of: actionState, tone: actionTone },
  { title: "Successor", of: (action) => action.successor ?? undefined },
  { title: "Mode", of: modeOf },
  { title: "Created", of: (action) => action.timestamped },
  { title: "Schema", of: (action) => JSON.stringify(action.schemata, null, 2), block: true },
];

/** Of one that was just made or changed, whose schema is in a file of the person's own. */
export const ACTION_CHANGED = ACTION_RECORD.filter(({ block }) => block !== true);

/** @param changes what each revision changed, by its number */
export function revisionColumns(changes: ReadonlyMap<number, string>): readonly Column<ActionRevision>[] {
  return [
    { title: "REVISION", of: ({ revision }) => revision, align: "right" },
    { title: "APPLIED", of: ({ timestamped }) => timestamped, time: true },
    { title: "MODE", of: ({ admission }) => admission?.compatibility },
    { title: "BREAKS", of: ({ admission }) => admission?.breaks, align: "right" },
    { title: "CHANGES", of: ({ revision }) => changes.get(revision), shrinkTo: 16 },
  ];
}

function actionTone(action: Action): "green" | "yellow" | "dim" {
  return ({ active: "green", deprecated: "yellow", retired: "dim" } as const)[actionState(action)];
}

function modeOf({ compatibility, compatibility_against: against }: Action): string {
  return against === "all" && compatibility !== "none" ? `${compatibility}, against all` : compatibility;
}

/** Characters of a value; a whole subschema would hide where it stands. */
const LONGEST_VALUE = 120;
/** Differences named in one cell of a listing. */
const NAMED = 3;

const SIGN = { added: "+", removed: "-", changed: "~" } as const;

/** A difference as a line: `~ /properties/age/minimum: 0 → 18`. */
export function differenceLine(difference: Difference): string {
  const values = [];
  if ("was" in difference) values.push(shown(difference.was));
  if ("is" in difference) values.push(shown(difference.is));
  return `${place(difference)}: ${values.join(" → ")}`;
}

/** Many as one cell: where they are, and how many more there are. */
export function differencesInShort(differences: readonly Difference[]): string {
  const named = differences.slice(0, NAMED).map(place).join(", ");
  const more = differences.length - NAMED;
  return more > 0 ? `${named} and ${more} more` : named;
}

function place({ kind, pointer }: Difference): string {
  return `${SIGN[kind]} ${printableLine(pointer || "(root)")}`;
}

function shown(value: unknown): string {
  const json = printableJson(JSON.stringify(value));
  return json.length > LONGEST_VALUE ? `${json.slice(0, LONGEST_VALUE).toWellFormed()}…` : json;
}
