import type { RecordOf } from "../model/field.ts";
import { type REPLAY, type REPLAY_COUNT, REPLAY_SELECTIONS, REPLAY_STATUSES } from "../model/replay.ts";
import { inputSchema, pageLimit, rowid, type ValueOf } from "./request.ts";

export type ReplaySelection = Replay["selection"];

export type ReplayStatus = Replay["status"];

/** A background job that sends many events of the past to one subscription. */
export interface Replay extends RecordOf<typeof REPLAY> {}

/** What a replay would send if it started now. */
export interface ReplayCount extends RecordOf<typeof REPLAY_COUNT> {}

export const REPLAY_LIMITS = { listDefault: 50, listMax: 500 } as const;

export const NEW_REPLAY = inputSchema(
  "NewReplay",
  {
    from: {
      type: "string",
      format: "date-time",
      description: "Events published then or later; ISO 8601 with its zone.",
      examples: ["2026-01-31T00:00:00Z"],
    },
    to: {
      type: "string",
      format: "date-time",
      description:
        "Events published before then. Left out: until now. Later ones are never part of a replay.",
      examples: ["2026-02-01T00:00:00Z"],
    },
    status: {
      type: "string",
      enum: REPLAY_SELECTIONS,
      description:
        "failed: those whose delivery failed for good. waiting: those whose delivery has failed so far and waits for its next attempt; each is due now, with all its retries again, and a subscription that is slowed is so no longer. missed: those without a delivery, published while the subscription was paused, before it existed or while it had another action. all: those of failed and missed, those that the filter excluded, and those delivered already once more; the filter in force decides on each.",
    },
    dry_run: {
      type: "boolean",
      default: false,
      description: "Only counts what would be sent, and begins nothing.",
    },
  },
  ["from", "status"],
);
export type NewReplay = Omit<ValueOf<typeof NEW_REPLAY>, "dry_run">;

export const REPLAY_QUERY = inputSchema("ReplayQuery", {
  subscription: { ...rowid, description: "Only to the subscription with this rowid." },
  status: { type: "string", enum: REPLAY_STATUSES, description: "Only in this state." },
  limit: pageLimit(REPLAY_LIMITS, "Replays in one answer."),
  after: { ...rowid, description: "Walks on to replays older than this rowid." },
});
export type ReplayQuery = ValueOf<typeof REPLAY_QUERY>;
