import { type Column, id } from "../cli/io/table.ts";
import type { Replay, ReplayCount } from "../domain/replay.ts";
import { subscriptionOf } from "./deliveries.ts";

export const REPLAY_LIST: readonly Column<Replay>[] = [
  { ...id, of: (replay) => replay.rowid },
  {
    title: "SUBSCRIPTION",
    of: (replay) => `${replay.subscription_id} ${subscriptionOf(replay)}`,
    shrinkTo: 12,
    whole: true,
  },
  { title: "ACTION", of: (replay) => replay.action, shrinkTo: 10, spare: 1 },
  { title: "EVENTS", of: (replay) => replay.selection },
  { title: "STATUS", of: (replay) => replay.status, tone: replayTone },
  { title: "QUEUED", of: (replay) => replay.queued, align: "right" },
  { title: "TOTAL", of: (replay) => replay.total, align: "right" },
  { title: "BEGUN", of: (replay) => replay.timestamped, time: "recent" },
];

const REPLAYED: readonly Column<ReplayCount | Replay>[] = [
  { title: "Subscription", of: (replay) => `${replay.subscription_id} ${subscriptionOf(replay)}` },
  { title: "Action", of: (replay) => replay.action },
  { title: "Events", of: (replay) => replay.selection },
  { title: "From", of: (replay) => replay.from },
  { title: "To", of: (replay) => replay.to },
  { title: "Total", of: (replay) => replay.total ?? "not counted yet" },
];

export const REPLAY_COUNT_RECORD: readonly Column<ReplayCount>[] = REPLAYED;

export const REPLAY_RECORD: readonly Column<Replay>[] = [
  { title: "Replay", of: (replay) => replay.rowid },
  ...REPLAYED,
  { title: "Status", of: (replay) => replay.status, tone: replayTone },
  { title: "Reason", of: (replay) => replay.reason ?? undefined },
  { title: "Queued", of: (replay) => replay.queued },
  { title: "Skipped", of: (replay) => (replay.skipped === 0 ? undefined : replay.skipped) },
  { title: "Begun", of: (replay) => replay.timestamped },
  { title: "Finished", of: (replay) => replay.finished_at ?? undefined },
];

function replayTone({ status }: Replay): "green" | "yellow" | "red" | "dim" {
  if (status === "done") return "green";
  if (status === "failed") return "red";
  return status === "cancelled" ? "dim" : "yellow";
}
