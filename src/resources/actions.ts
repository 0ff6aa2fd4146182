import type { Column } from "../cli/io/table.ts";
import { escapeControlInJson, escapeControl } from "../cli/io/text.ts";
import { type Action, type ActionRevision, actionState } from "../domain/action.ts";
import type { Difference } from "../schema/pointers.ts";

export const ACTION_LIST: readonly Column<Action>[] = [
  { title: "ACTION", value: (action) => action.action, shrinkTo: 16, keepWhole: true },
  { title: "APPLICATION", value: (action) => action.application, shrinkTo: 8 },
  { title: "REVISION", value: (action) => action.revision, align: "right" },
  { title: "STATE", value: actionState, color: actionTone },
  { title: "MODE", value: modeOf },
  { title: "CREATED", value: (action) => action.timestamped, dropOrder: 1, time: true },
];

export const ACTION_RECORD: readonly Column<Action>[] = [
  { title: "Action", value: (action) => action.action },
  { title: "Application", value: (action) => action.application },
  { title: "ID", value: (action) => action.rowid },
  { title: "Revision", value: (action) => action.revision },
  { title: "State", value: actionState, color: actionTone },
  { title: "Successor", value: (action) => action.successor ?? undefined },
  { title: "Mode", value: modeOf },
  { title: "Created", value: (action) => action.timestamped },
  { title: "Schema", value: (action) => JSON.stringify(action.schemata, null, 2), block: true },
];

/** Of one that was just made or changed, whose schema is in a file of the person's own. */
export const ACTION_CHANGED = ACTION_RECORD.filter(({ block }) => block !== true);

/** @param changes what each revision changed, by its number */
export function revisionColumns(changes: ReadonlyMap<number, string>): readonly Column<ActionRevision>[] {
  return [
    { title: "REVISION", value: ({ revision }) => revision, align: "right" },
    { title: "APPLIED", value: ({ timestamped }) => timestamped, time: true },
    { title: "MODE", value: ({ admission }) => admission?.compatibility },
    { title: "BREAKS", value: ({ admission }) => admission?.breaks, align: "right" },
    { title: "CHANGES", value: ({ revision }) => changes.get(revision), shrinkTo: 16 },
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
  return `${SIGN[kind]} ${escapeControl(pointer || "(root)")}`;
}

function shown(value: unknown): string {
  const json = escapeControlInJson(JSON.stringify(value));
  return json.length > LONGEST_VALUE ? `${json.slice(0, LONGEST_VALUE).toWellFormed()}…` : json;
}
