import { type Column, ID_COLUMN } from "../cli/io/table.ts";
import type { Replay, ReplayCount } from "../domain/replay.ts";
import { subscriptionOf } from "./deliveries.ts";

export const REPLAY_LIST: readonly Column<Replay>[] = [
  { ...ID_COLUMN, value: (replay) => replay.rowid },
  {
    title: "SUBSCRIPTION",
    value: (replay) => `${replay.subscription_id} ${subscriptionOf(replay)}`,
    shrinkTo: 12,
    keepWhole: true,
  },
  { title: "ACTION", value: (replay) => replay.action, shrinkTo: 10, dropOrder: 1 },
  { title: "EVENTS", value: (replay) => replay.selection },
  { title: "STATUS", value: (replay) => replay.status, color: replayTone },
  { title: "QUEUED", value: (replay) => replay.queued, align: "right" },
  { title: "TOTAL", value: (replay) => replay.total, align: "right" },
  { title: "BEGUN", value: (replay) => replay.timestamped, time: "recent" },
];

const REPLAYED: readonly Column<ReplayCount | Replay>[] = [
  { title: "Subscription", value: (replay) => `${replay.subscription_id} ${subscriptionOf(replay)}` },
  { title: "Action", value: (replay) => replay.action },
  { title: "Events", value: (replay) => replay.selection },
  { title: "From", value: (replay) => replay.from },
  { title: "To", value: (replay) => replay.to },
  { title: "Total", value: (replay) => replay.total ?? "not counted yet" },
];

export const REPLAY_COUNT_RECORD: readonly Column<ReplayCount>[] = REPLAYED;

export const REPLAY_RECORD: readonly Column<Replay>[] = [
  { title: "Replay", value: (replay) => replay.rowid },
  ...REPLAYED,
  { title: "Status", value: (replay) => replay.status, color: replayTone },
  { title: "Reason", value: (replay) => replay.reason ?? undefined },
  { title: "Queued", value: (replay) => replay.queued },
  { title: "Skipped", value: (replay) => (replay.skipped === 0 ? undefined : replay.skipped) },
  { title: "Begun", value: (replay) => replay.timestamped },
  { title: "Finished", value: (replay) => replay.finished_at ?? undefined },
];

function replayTone({ status }: Replay): "green" | "yellow" | "red" | "dim" {
  if (status === "done") return "green";
  if (status === "failed") return "red";
  return status === "cancelled" ? "dim" : "yellow";
}
