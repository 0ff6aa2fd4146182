import type { Column } from "../io/table.ts";
import { nextCommand } from "../target/next-command.ts";
import { type Action, type ActionRevision, actionState } from "../../domain/action.ts";
import { ACTION } from "../../model/action.ts";
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

export const REVISIONS: readonly Column<ActionRevision>[] = [
  { title: "REVISION", value: ({ revision }) => revision, align: "right" },
  { title: "APPLIED", value: ({ timestamped }) => timestamped, time: true },
  { title: "MODE", value: ({ compatibility }) => compatibility },
];
