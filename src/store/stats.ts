import type { StoredFigures } from "../metrics/stats/tally.ts";

/** Spans of time that figures are stored of, in minutes. */
export const STATS_SPANS = [1, 60, 1_440] as const;
export type StatsSpan = (typeof STATS_SPANS)[number];

/** Of what figures are stored. */
export type StatsKind = "all" | "application" | "action" | "subscription";

/** What happened in a minute. */
export interface StatsRow extends StoredFigures {
  readonly kind: StatsKind;
  /** `""` for all. */
  readonly application: string;
  /** Only of that kind. */
  readonly action?: string;
  /** Only of that kind. */
  readonly subscription?: number;
}

/** Whose figures are read: those of everything, where nothing is given. */
export interface StatsOf {
  readonly applications?: readonly string[] | undefined;
  /** Also a pattern. */
  readonly action?: string | undefined;
  readonly subscription?: number | undefined;
}

export interface StatsSteps extends StatsOf {
  readonly span: StatsSpan;
  /** Milliseconds since the epoch, of the first step; the steps end before `toMs`. */
  readonly fromMs: number;
  readonly toMs: number;
  /** A multiple of the span. */
  readonly stepMs: number;
}

export interface StoredStep {
  readonly startMs: number;
  readonly figures: StoredFigures;
}

/** A part of the time that is added up. */
export interface StatsPiece {
  readonly span: StatsSpan;
  readonly startMs: number;
}

export interface StatsTotals extends StatsOf {
  readonly by: "action" | "subscription";
  /** Rising. */
  readonly pieces: readonly StatsPiece[];
}

/** `action` or `subscription`, by what was asked. */
export interface StoredTotal {
  readonly action: string;
  readonly subscription: number;
  readonly figures: StoredFigures;
}

export interface StatsSubjects extends StatsOf {
  /** Those with figures, in this order; others follow by name. */
  readonly first: readonly (string | number)[];
  readonly limit: number;
}

export interface ActionSubject {
  readonly action: string;
  readonly application: string;
  /** Of its last event. */
  readonly lastPublishedMs: number | null;
}

export interface SubscriptionSubject {
  readonly id: number;
  readonly application: string;
  readonly subscription: string;
  readonly action: string;
}

/** Figures by the minute, hour and day. */
export interface StatsStore {
  /** Adds what happened in a minute to what is stored of it, its hour and its day. A power cut may undo it. */
  add(startMs: number, rows: readonly StatsRow[]): Promise<void>;
  /** Every step of which anything is known, rising; with nothing but zeros where only that is known. */
  steps(query: StatsSteps): Promise<readonly StoredStep[]>;
  /** What each action or subscription had. */
  totals(query: StatsTotals): Promise<readonly StoredTotal[]>;
  actions(query: StatsSubjects): Promise<readonly ActionSubject[]>;
  subscriptions(query: StatsSubjects): Promise<readonly SubscriptionSubject[]>;
  /** Removes some of what is from before; answers how much. */
  removeExpired(beforeMs: number): Promise<number>;
}
