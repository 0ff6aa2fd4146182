/**
 * Which of a subscription's events a replay sends:
 * failed: those whose delivery failed for good, with all their retries again.
 * missed: those that have no delivery, published while it was paused, before it existed or while it was bound to
 * another action.
 * all: both, those that a filter kept back, which is asked anew, and those delivered already once more. What is still on
 * its way is left alone.
 */
export const REPLAY_SELECTIONS = ["failed", "missed", "all"] as const;
export type ReplaySelection = (typeof REPLAY_SELECTIONS)[number];

/**
 * running → done
 *    ├────→ cancelled: by a person, or with its subscription.
 *    └────→ failed: it cannot go on, `reason` says why.
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
  /** How many there were to send when it began; `null` until they are counted. */
  readonly total: number | null;
  /** Handed to delivery so far. */
  readonly queued: number;
  /** Of the total: gone, or sent again by somebody else, when their turn came; known once it is done. */
  readonly skipped: number;
  readonly timestamped: string;
  readonly finished_at: string | null;
}

/** What a replay would send, were it begun now. */
export type ReplayCount = Pick<
  Replay,
  "subscription_id" | "application" | "subscription" | "action" | "selection" | "from" | "to"
> & { readonly total: number };

export interface NewReplay {
  /** ISO 8601, inclusive; of the events' publication. */
  readonly from: string;
  /** ISO 8601, exclusive; the moment of the request when left out. */
  readonly to?: string;
  readonly status: ReplaySelection;
}

export interface ReplayQuery {
  readonly subscription?: number;
  readonly status?: ReplayStatus;
  /** 1 to 500, default 50. */
  readonly limit?: number;
  /** Walks on to replays older than this rowid. */
  readonly after?: number;
}

export const REPLAY_LIMITS = { listDefault: 50, listMax: 500 } as const;
