import { type BodyOf, bodySchema, pageLimit, type QueryOf, querySchema, rowid } from "./request.ts";

/**
 * Which of a subscription's events a replay sends; `NEW_REPLAY` describes each. Deliveries that are not finished stay as
 * they are, but for those that `waiting` makes due.
 */
export const REPLAY_SELECTIONS = ["failed", "waiting", "missed", "all"] as const;
export type ReplaySelection = (typeof REPLAY_SELECTIONS)[number];

/**
 * running → done
 *    ├────→ cancelled: by a person, or with its subscription.
 *    └────→ failed: it cannot continue; `reason` has the cause.
 */
export const REPLAY_STATUSES = ["running", "done", "cancelled", "failed"] as const;
export type ReplayStatus = (typeof REPLAY_STATUSES)[number];

/** A background job that sends many events of the past to one subscription. */
export interface Replay {
  readonly rowid: number;
  readonly subscription_id: number;
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  readonly selection: ReplaySelection;
  /** ISO 8601 UTC: when the events were published. */
  readonly from: string;
  readonly to: string;
  readonly status: ReplayStatus;
  /** Why it ended before it was done; `null` otherwise, and when a person cancelled it. */
  readonly reason: string | null;
  /**
   * How many there were to send when it began, or those queued where more failed meanwhile; `null` until they are counted.
   * Deliveries that finish meanwhile do not change it.
   */
  readonly total: number | null;
  /** Queued for delivery so far. */
  readonly queued: number;
  /** How many of the total are gone, or were sent again by somebody else meanwhile. It is known once the replay is done. */
  readonly skipped: number;
  readonly timestamped: string;
  readonly finished_at: string | null;
}

/** What a replay would send if it started now. */
export type ReplayCount = Pick<
  Replay,
  "subscription_id" | "application" | "subscription" | "action" | "selection" | "from" | "to"
> & { readonly total: number };

export const REPLAY_LIMITS = { listDefault: 50, listMax: 500 } as const;

export const NEW_REPLAY = bodySchema(
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
        "failed: those whose delivery failed for good. waiting: those whose delivery has failed so far and waits for its next attempt; each is due now, with all its retries again, and a subscription that is slowed is so no longer. missed: those without a delivery, published while the subscription was paused, before it existed or while it had another action. all: both, those that the filter excluded, and those delivered already once more; the filter in force decides on each.",
    },
    dry_run: {
      type: "boolean",
      default: false,
      description: "Only counts what would be sent, and begins nothing.",
    },
  },
  ["from", "status"],
);
export type NewReplay = Omit<BodyOf<typeof NEW_REPLAY>, "dry_run">;

export const REPLAY_QUERY = querySchema("ReplayQuery", {
  subscription: { ...rowid, description: "Only to the subscription with this rowid." },
  status: { type: "string", enum: REPLAY_STATUSES, description: "Only in this state." },
  limit: pageLimit(REPLAY_LIMITS, "Replays in one answer."),
  after: { ...rowid, description: "Walks on to replays older than this rowid." },
});
export type ReplayQuery = QueryOf<typeof REPLAY_QUERY>;
