import { ID_COLUMN } from "../io/table.ts";
import { nextCommand } from "../target/next-command.ts";
import type { Replay, ReplayCount } from "../../domain/replay.ts";
import { REPLAY, REPLAY_COUNT } from "../../model/replay.ts";
import { subscriptionOf } from "./deliveries.ts";
import { linesOf, listOf, type RecordView, type ShownMembers } from "./view.ts";

/** Beside the replay's own status, `failed` alone would read as that. */
const SELECTIONS = { failed: "had failed", waiting: "waited", missed: "were missed", all: "all" } as const;

/** The time from which on there is every event, for replays that need none. */
export const THE_BEGINNING = "1970-01-01T00:00:00.000Z";

const COUNT_SHOWN = {
  subscription: (replay: Replay | ReplayCount) => `${replay.subscription_id} ${subscriptionOf(replay)}`,
  selection: ({ selection }: Replay | ReplayCount) => SELECTIONS[selection],
  from: ({ from }: Replay | ReplayCount) => (from === THE_BEGINNING ? "the first event" : from),
};

const SHOWN: ShownMembers<Replay> = {
  ...COUNT_SHOWN,
  total: ({ total }) => total ?? "not counted yet",
  status: { color: colorOf },
  skipped: ({ skipped }) => (skipped === 0 ? undefined : skipped),
};

const LINES = ["rowid", "subscription", "action", "selection", "from", "to", "total"] as const;

/** What a replay would send. */
export const REPLAY_COUNT_RECORD = linesOf<ReplayCount>(REPLAY_COUNT, COUNT_SHOWN);

export const REPLAYS = {
  noun: "replay",
  plural: "replays",
  record: linesOf(REPLAY, SHOWN, LINES),
  list: listOf(REPLAY, SHOWN, {
    rowid: ID_COLUMN,
    subscription: { shrinkTo: 12, keepWhole: true },
    action: { shrinkTo: 10, dropOrder: 1 },
    selection: {},
    status: {},
    queued: { align: "right" },
    total: { value: ({ total }) => total, align: "right" },
    timestamped: { time: true },
  }),
  none: () =>
    `No replays yet. Begin one: ${nextCommand("subscriptions replay ID --from TIME --status missed")}`,
} satisfies RecordView<Replay>;

function colorOf({ status }: Replay): "green" | "yellow" | "red" | "dim" {
  if (status === "done") return "green";
  if (status === "failed") return "red";
  return status === "cancelled" ? "dim" : "yellow";
}
