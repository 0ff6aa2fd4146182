import { REPLAY_SELECTIONS, REPLAY_STATUSES } from "../../domain/replay.ts";
import type { JsonSchema } from "../route.ts";
import { count, nullableTimestamp, record, rowid, text, timestamp } from "./members.ts";

const replayed = {
  subscription_id: rowid,
  application: text,
  subscription: text,
  action: text,
  selection: { type: "string", enum: REPLAY_SELECTIONS },
  from: { ...timestamp, description: "Of the events' publication, included." },
  to: { ...timestamp, description: "Not included." },
} as const;

/** Replays as they are answered. */
export const REPLAY_RECORDS: Readonly<Record<string, JsonSchema>> = {
  ReplayCount: record({ ...replayed, total: { ...count, description: "Deliveries it would make due." } }),
  Replay: record({
    rowid,
    ...replayed,
    status: {
      type: "string",
      enum: REPLAY_STATUSES,
      description: "`done`: each one was handed to delivery, where `GET /v1/deliveries` tells of it.",
    },
    reason: { type: ["string", "null"], description: "Why it ended before it was done." },
    total: {
      type: ["integer", "null"],
      minimum: 0,
      description: "What there was to send when it began; `null` until it is counted.",
    },
    queued: { ...count, description: "Handed to delivery so far." },
    skipped: {
      ...count,
      description:
        "Of the total: gone, or sent again by somebody else, when their turn came. Known once it is done.",
    },
    timestamped: timestamp,
    finished_at: nullableTimestamp,
  }),
};
