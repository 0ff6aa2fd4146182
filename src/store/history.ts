import type { Actor, AuditEntry } from "../domain/audit.ts";
import type { Replay, ReplayQuery, ReplaySelection } from "../domain/replay.ts";
import type { StatsBreakdown } from "../domain/stats/stats.ts";
import type { MeasureCounts } from "../domain/stats/tally.ts";
import type { StatsSelection } from "./queue.ts";

/** Replays: past events that are sent to a subscription again. */
export interface ReplayStore {
  /**
   * How many deliveries a replay would send, or the one with this rowid has still to send. Blocks no write; rejects with
   * the signal's reason once that is aborted.
   */
  count(query: ReplayRequest | { readonly replay: number }, signal?: AbortSignal): Promise<number>;
  /**
   * Records a running replay of the events so far that the subscription's action stands for. `conflict` while another one of the
   * subscription runs; `undefined` when it was deleted.
   */
  start(request: ReplayRequest, nowMs: number, by?: Actor): Promise<Replay | undefined>;
  /** Makes the next deliveries due and stores the position, in one transaction: no step is repeated. */
  advance(id: number, step: ReplayStep): Promise<ReplayProgress>;
  find(id: number): Promise<Replay | undefined>;
  /** Lists the selected records, newest first. */
  list(query: ReplaySelector): Promise<readonly Replay[]>;
  /**
   * Cancels a replay; what it made due stays so. Answers a cancelled one as it is, and rejects with `conflict` when it ended
   * otherwise.
   */
  cancel(id: number, nowMs: number, by?: Actor): Promise<Replay | undefined>;
}

export interface ReplayRequest {
  readonly subscription: number;
  readonly selection: ReplaySelection;
  readonly fromMs: number;
  /** Without this time, the replay has all events from `fromMs` on that there are. */
  readonly toMs?: number;
}

export interface ReplayStep {
  readonly nowMs: number;
  /** The most deliveries that the step makes due. */
  readonly maxQueued: number;
  /** The step makes none due beyond so many due deliveries of the subscription, those under way included. */
  readonly maxDue: number;
  /** The step makes none due beyond so many unfinished deliveries of the subscription, those that wait for a retry included. */
  readonly maxUnfinished: number;
  /** The total of what there is to send, which the step stores. */
  readonly total?: number;
}

export interface ReplayProgress {
  readonly queued: number;
  /**
   * `running`: take the next step; `saturated`: the subscription has enough to do for now; `paused`: it is not active;
   * `ended`: the replay runs no more.
   */
  readonly state: "running" | "saturated" | "paused" | "ended";
}

/** Without `limit` all are listed. */
export interface ReplaySelector extends ReplayQuery {
  readonly applications?: readonly string[];
}

/** Who changed what. Entries are written by the calls that they report, where these are given who asks. */
export interface AuditStore {
  /** Lists the selected records, newest first. */
  list(query: AuditSelection): Promise<readonly AuditEntry[]>;
  /** Removes some of the entries that are older than a time; answers how many. */
  removeExpired(beforeMs: number): Promise<number>;
}

export interface AuditSelection {
  readonly fromMs?: number;
  readonly toMs?: number;
  readonly limit: number;
  readonly after?: number;
}

/** One of the spans of time that figures are kept by, see `STATS_SPANS`. */
export interface StatsPiece {
  readonly spanMs: number;
  readonly startMs: number;
}

export interface StoredStatsQuery extends StatsSelection {
  /** What the figures are added up by: the starts of the pieces, or the rowids of actions or subscriptions. */
  readonly by: "start" | StatsBreakdown;
  /** The pieces rise. */
  readonly pieces: readonly StatsPiece[];
}

/** What was counted by a key; several of one key are to be added up. */
export interface CountedFigure {
  readonly key: number;
  readonly counts: MeasureCounts;
  readonly lastError: string | null;
}

export interface StatsSubjects extends StatsSelection {
  readonly by: StatsBreakdown;
  /** The rowids of the actions or subscriptions that have figures, in this order; others follow by name. */
  readonly first: readonly number[];
  readonly limit: number;
}

/** An action, or a subscription that is not deleted. */
export interface StatsSubject {
  readonly id: number;
  readonly application: string;
  /** The name of the subscription; `null` for an action. */
  readonly subscription: string | null;
  readonly action: string;
  readonly lastPublishedMs: number | null;
}

/** Figures over time. Events, attempts and deliveries are counted in the transactions that store them. */
export interface StatsStore {
  /** Answers what was counted. */
  figures(query: StoredStatsQuery): Promise<readonly CountedFigure[]>;
  subjects(query: StatsSubjects): Promise<readonly StatsSubject[]>;
  /** Removes some of what is too old by now; answers how much. */
  removeExpired(nowMs: number): Promise<number>;
}
