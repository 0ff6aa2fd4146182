import { field, type Fields, ofSubscription } from "./field.ts";

/**
 * Which of a subscription's events a replay sends; `NEW_REPLAY` describes each. Deliveries that are not finished stay as
 * they are, but for those that `waiting` makes due.
 */
export const REPLAY_SELECTIONS = ["failed", "waiting", "missed", "all"] as const;

/**
 * running → done
 *    ├────→ cancelled: by a person, or with its subscription.
 *    └────→ failed: it cannot continue; `reason` has the cause.
 */
export const REPLAY_STATUSES = ["running", "done", "cancelled", "failed"] as const;

const REPLAYED = {
  ...ofSubscription,
  selection: { answer: { type: "string", enum: REPLAY_SELECTIONS }, title: "Events" },
  from: { answer: field.timestamp, about: "Events published from this time on.", title: "From" },
  to: { answer: field.timestamp, about: "Events published before this time.", title: "To" },
};

/** What a replay would send. */
export const REPLAY_COUNT = {
  ...REPLAYED,
  total: { answer: field.count, about: "Deliveries it would make due.", title: "Total" },
} as const satisfies Fields;

/** A background job that sends many events of the past to one subscription. */
export const REPLAY = {
  rowid: { answer: field.rowid, title: "Replay" },
  ...REPLAYED,
  status: {
    answer: { type: "string", enum: REPLAY_STATUSES },
    about: "`done`: all deliveries are due; `GET /v1/deliveries` shows how each of them went.",
    title: "Status",
  },
  reason: { answer: field.nullableText, about: "Why it ended before it was done.", title: "Reason" },
  total: {
    answer: field.nullableCount,
    about:
      "Number of deliveries to send when it started, which those that finish meanwhile do not change, or as many as `queued` where more failed; `null` until they are counted.",
    title: "Total",
  },
  queued: { answer: field.count, about: "Number of deliveries made due so far.", title: "Queued" },
  skipped: {
    answer: field.count,
    about:
      "How many of the total were deleted, or sent again by someone else, before their turn. Known once it is done.",
    title: "Skipped",
  },
  timestamped: { answer: field.timestamp, title: "Begun" },
  finished_at: { answer: field.nullableTimestamp, title: "Finished" },
} as const satisfies Fields;
