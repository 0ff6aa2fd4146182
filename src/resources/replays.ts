import { ID_COLUMN } from "../cli/io/table.ts";
import { nextCommand } from "../cli/target/next-command.ts";
import type { Replay, ReplayCount } from "../domain/replay.ts";
import { subscriptionOf } from "./deliveries.ts";
import { type Fields, listColumns, recordColumns, type Resource } from "./resource.ts";

/** Beside the replay's own status, `failed` alone would read as that. */
const SELECTIONS = { failed: "had failed", waiting: "waited", missed: "were missed", all: "all" } as const;

const COUNT_FIELDS = {
  subscription: {
    title: "Subscription",
    show: (replay: ReplayCount | Replay) => `${replay.subscription_id} ${subscriptionOf(replay)}`,
  },
  action: "Action",
  selection: {
    title: "Events",
    show: ({ selection }: ReplayCount | Replay) => SELECTIONS[selection],
  },
  from: "From",
  to: "To",
  total: { title: "Total", show: ({ total }: ReplayCount | Replay) => total ?? "not counted yet" },
} as const;

const FIELDS: Fields<Replay> = {
  rowid: "Replay",
  ...COUNT_FIELDS,
  status: { title: "Status", color: colorOf },
  reason: "Reason",
  queued: "Queued",
  skipped: { title: "Skipped", show: ({ skipped }) => (skipped === 0 ? undefined : skipped) },
  timestamped: "Begun",
  finished_at: "Finished",
};

/** What a replay would send. */
export const REPLAY_COUNT_RECORD = recordColumns<ReplayCount>(COUNT_FIELDS);

/** How many deliveries of each subscription there are to send again. */
export const RETRY_COUNT_LIST = listColumns<ReplayCount>(COUNT_FIELDS, {
  subscription: { shrinkTo: 12, keepWhole: true },
  action: { shrinkTo: 10, dropOrder: 1 },
  total: { title: "DELIVERIES", align: "right" },
});

export const REPLAYS = {
  noun: "replay",
  plural: "replays",
  record: recordColumns(FIELDS),
  list: listColumns(FIELDS, {
    rowid: ID_COLUMN,
    subscription: { shrinkTo: 12, keepWhole: true },
    action: { shrinkTo: 10, dropOrder: 1 },
    selection: {},
    status: {},
    queued: { align: "right" },
    total: { value: ({ total }) => total, align: "right" },
    timestamped: { time: "shortYear" },
  }),
  none: () =>
    `No replays yet. Begin one: ${nextCommand("subscriptions replay ID --from TIME --status missed")}`,
  label: (replay) => ({ value: String(replay.rowid), about: `${subscriptionOf(replay)} ${replay.status}` }),
} satisfies Resource<Replay>;

function colorOf({ status }: Replay): "green" | "yellow" | "red" | "dim" {
  if (status === "done") return "green";
  if (status === "failed") return "red";
  return status === "cancelled" ? "dim" : "yellow";
}
