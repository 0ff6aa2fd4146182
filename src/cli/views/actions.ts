import type { Column } from "../io/table.ts";
import { escapeControl } from "../io/text.ts";
import { nextCommand } from "../target/next-command.ts";
import { type Action, type ActionRevision, actionState } from "../../domain/action.ts";
import { ACTION } from "../../model/action.ts";
import type { Difference } from "../../schema/differences.ts";
import { linesOf, listOf, type RecordView, type ShownMembers } from "./view.ts";

const STATE_COLORS = { active: "green", deprecated: "yellow", retired: "dim" } as const;

const SHOWN: ShownMembers<Action> = {
  deprecated: { show: actionState, color: (action) => STATE_COLORS[actionState(action)] },
  schemata: { show: ({ schemata }) => JSON.stringify(schemata, null, 2), block: true },
};

const LINES = [
  "action",
  "application",
  "rowid",
  "revision",
  "deprecated",
  "successor",
  "compatibility",
  "timestamped",
] as const;

export const ACTIONS = {
  noun: "action",
  plural: "actions",
  record: linesOf(ACTION, SHOWN, LINES),
  list: listOf(ACTION, SHOWN, {
    action: { shrinkTo: 16, keepWhole: true },
    application: { shrinkTo: 8 },
    revision: { align: "right" },
    deprecated: {},
    compatibility: {},
    timestamped: { dropOrder: 1, time: true },
  }),
  none: () =>
    `No actions yet. Create one: ${nextCommand("actions create NAME --application APP --schema FILE")}`,
} satisfies RecordView<Action>;

/** The members of one that was just made or changed, whose schema is in a file of the person's own. */
export const ACTION_CHANGED = ACTIONS.record.filter(({ block }) => block !== true);

/** @param changes what each revision changed, by its number */
export function revisionColumns(changes: ReadonlyMap<number, string>): readonly Column<ActionRevision>[] {
  return [
    { title: "REVISION", value: ({ revision }) => revision, align: "right" },
    { title: "APPLIED", value: ({ timestamped }) => timestamped, time: true },
    { title: "MODE", value: ({ compatibility }) => compatibility },
    { title: "CHANGES", value: ({ revision }) => changes.get(revision), shrinkTo: 16 },
  ];
}

/** Differences named in one cell of a listing. */
const NAMED = 3;

const SIGN = { added: "+", removed: "-", changed: "~" } as const;

/** Many as one cell: where they are, and how many more there are. */
export function differencesInShort(differences: readonly Difference[]): string {
  const named = differences.slice(0, NAMED).map(place).join(", ");
  const more = differences.length - NAMED;
  return more > 0 ? `${named} and ${more} more` : named;
}

function place({ kind, pointer }: Difference): string {
  return `${SIGN[kind]} ${escapeControl(pointer || "(root)")}`;
}
