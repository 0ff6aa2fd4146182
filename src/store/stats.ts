import type { StoredFigures } from "../domain/stats/tally.ts";
import { DAY_MS, HOUR_MS, MINUTE_MS, TEN_SECONDS_MS } from "../domain/stats/stats.ts";

/** How long the spans of time are that figures are stored of, in milliseconds. */
export const STATS_SPANS = {
  tenSeconds: TEN_SECONDS_MS,
  minute: MINUTE_MS,
  hour: HOUR_MS,
  day: DAY_MS,
} as const;
export type StatsSpan = keyof typeof STATS_SPANS;

/** Requests that were refused. */
export interface RefusedCount {
  /** Within the ten seconds in which they came. */
  readonly atMs: number;
  /** `""` for those of none that is known. */
  readonly action: string;
  readonly count: number;
}

/** A time from one start of a span to another, in milliseconds since the epoch. */
export interface StatsTime {
  readonly fromMs: number;
  /** The first that is not in it. */
  readonly toMs: number;
}

/** Whose figures are read: those of everything, where nothing is given. */
export interface StatsOf {
  readonly applications?: readonly string[] | undefined;
  /** Also a pattern. */
  readonly action?: string | undefined;
  readonly subscription?: number | undefined;
}

export interface StatsSteps extends StatsOf, StatsTime {
  readonly span: StatsSpan;
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

export type StatsSubject = "action" | "subscription";

export interface StatsTotals extends StatsOf {
  readonly by: StatsSubject;
  /** Rising. */
  readonly pieces: readonly StatsPiece[];
}

/** `action` or `subscription`, by what was asked. */
export interface StoredTotal {
  readonly action: string;
  readonly subscription: number;
  readonly figures: StoredFigures;
}

export interface OpenStats extends StatsOf, StatsTime {
  readonly by: StatsSubject | undefined;
}

export interface OpenFigures {
  /** Of ten seconds each, rising. */
  readonly steps: readonly StoredStep[];
  /** None without `by`. */
  readonly totals: readonly StoredTotal[];
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

/**
 * Figures by ten seconds, minute, hour and day. Events, attempts and deliveries are counted in the transactions that store them.
 * These counts are open until `fold` adds them to the figures.
 */
export interface StatsStore {
  countRefused(counts: readonly RefusedCount[]): Promise<void>;
  /**
   * Adds some of what was counted before that time to the figures; answers whether there may be more.
   * @param known a time of which is known that nothing happened where nothing was counted
   */
  fold(beforeMs: number, known?: StatsTime): Promise<boolean>;
  /** Every step of which anything is known, rising; with nothing but zeros where only that is known. */
  steps(query: StatsSteps): Promise<readonly StoredStep[]>;
  /** What each action or subscription had. */
  totals(query: StatsTotals): Promise<readonly StoredTotal[]>;
  /** What is counted and not folded. */
  open(query: OpenStats): Promise<OpenFigures>;
  actions(query: StatsSubjects): Promise<readonly ActionSubject[]>;
  subscriptions(query: StatsSubjects): Promise<readonly SubscriptionSubject[]>;
  /** Removes some of what is too old by now; answers how much. */
  removeExpired(nowMs: number): Promise<number>;
}
