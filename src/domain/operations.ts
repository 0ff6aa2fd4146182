import { byApplication, pageLimit, type QueryOf, querySchema } from "./request.ts";

export interface Health {
  readonly status: "ok" | "unavailable";
  readonly version: string;
  /** Why it is unavailable; absent while it is ok. */
  readonly reason?: string;
  readonly store: "ok" | "unavailable";
  /** `failing`: it runs, and has not been able to read what is due for some time. */
  readonly engine: "running" | "failing" | "stopped";
  /** New at each start. By it a command knows that the server it found wrote the data folder's owner file. */
  readonly instance: string;
}

/** The result of one check. */
export interface Finding {
  /** What was checked, in a word or two. */
  readonly check: string;
  /** A `warning` will become a problem, or may be intended. */
  readonly status: "ok" | "warning" | "problem";
  /** A sentence, without secrets. */
  readonly found: string;
  /** What to do about it; `null` when all is well. */
  readonly remedy: string | null;
}

export interface FindingsMeta {
  /** ISO 8601 UTC, by the clock of whoever checked. */
  readonly time: string;
}

export function fine(check: string, found: string): Finding {
  return { check, status: "ok", found, remedy: null };
}

export function warning(check: string, found: string, remedy: string): Finding {
  return { check, status: "warning", found, remedy };
}

export function problem(check: string, found: string, remedy: string): Finding {
  return { check, status: "problem", found, remedy };
}

/**
 * A copy of all that is stored, as it was at one moment after the request. It is a data file, with its secrets as they are
 * stored, encrypted or not.
 */
export interface Backup {
  readonly bytes: number;
  /** The SHA-256 of the bytes, in hex. */
  readonly sha256: string;
  /** The bytes, which can be read once. It fails when they are not those that were copied. */
  content(): AsyncIterable<Uint8Array>;
  /** Needed also after its content was read. Safe to call twice. */
  close(): Promise<void>;
}

/**
 * Why a subscription needs a person, the gravest first. deactivated: evreg gave up on its handler. blocked: a delivery that used up
 * its retries holds up those behind it. failing: the last attempt failed. failed: deliveries failed for good within a day.
 * slowed: no attempt begins for now. paused: a person paused it, and it holds deliveries or has missed events.
 */
export const ATTENTION_REASONS = [
  "deactivated",
  "blocked",
  "failing",
  "failed",
  "unclaimed",
  "slowed",
  "paused",
] as const;
export type AttentionReason = (typeof ATTENTION_REASONS)[number];

/** Something that needs a person. A subscription has one for its state at most, and one more for what failed. */
export interface Attention {
  readonly reason: AttentionReason;
  readonly subscription_id: number;
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
  /** ISO 8601 UTC; of `blocked` and `failing` the first failure since the last success, of `failed` the first within a day, of `unclaimed` the later of the last claim and of when the oldest became due. `null` where it is not known. */
  readonly since: string | null;
  /** ISO 8601 UTC: no attempt begins before this; `null` if one may. */
  readonly until: string | null;
  /**
   * ISO 8601 UTC; of `failed`: when the oldest event was published whose delivery failed, so that a replay from there sends
   * all of them. Of all that ever failed, where only so many were counted. `null` otherwise.
   */
  readonly published_from: string | null;
  /** Deliveries that are held, wait (of `blocked` behind the one that blocks), or have failed. */
  readonly deliveries: number | null;
  /** Whether only so many were counted, and there may be more. */
  readonly at_least: boolean;
  /** The delivery that blocks it, or that failed last. */
  readonly delivery_id: number | null;
  /** Events published since it was paused or deactivated, for which it has no delivery; `null` where that is not known. */
  readonly missed: number | null;
  /** The last error such as `HTTP 500`, or why it was deactivated. */
  readonly error: string | null;
  /** A sentence with all this. */
  readonly found: string;
}

/** A process that has the data open. */
export interface Node {
  /** New at each start. */
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  readonly version: string;
  /** `visiting` is a command, which delivers nothing; what is `gone` ended without a word. */
  readonly status: NodeStatus;
  /** ISO 8601 UTC. */
  readonly started_at: string;
  /** ISO 8601 UTC: its last sign of life. */
  readonly seen_at: string;
  /** How many of the shards it has, see `NodesMeta`, and how many of these it gives up once nothing of them is under way. */
  readonly shards: number;
  readonly leaving: number;
}

export const NODE_STATUSES = ["serving", "visiting", "gone"] as const;
type NodeStatus = (typeof NODE_STATUSES)[number];

export interface NodesMeta {
  /** Into how many parts the subscriptions are shared out. */
  readonly shards: number;
  /** The one that answers. */
  readonly answered_by: string;
}

export interface AttentionMeta {
  /** How many there are. */
  readonly total: number;
  /** How many subscriptions they are of: one may have two entries. */
  readonly subscriptions: number;
  /** ISO 8601 UTC, by the clock of whoever looked. */
  readonly time: string;
}

export const ATTENTION_LIMITS = { listDefault: 100, listMax: 500 } as const;

export const ATTENTION_QUERY = querySchema("AttentionQuery", {
  application: byApplication,
  limit: pageLimit(ATTENTION_LIMITS, "Entries in the answer."),
});
export type AttentionQuery = QueryOf<typeof ATTENTION_QUERY>;
