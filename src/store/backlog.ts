/** Unfinished deliveries, each in one of the parts; those of deleted subscriptions in none. */
export interface Backlog {
  /** To be sent now. `sinceMs`: when the first of them came due. */
  readonly due: BacklogPart;
  /** To be sent at a time to come. */
  readonly waiting: BacklogPart;
  /** Leased. `sinceMs`: since when the first of them is. */
  readonly delivering: BacklogPart;
  /** Of paused subscriptions. `sinceMs`: when the first of them came due. */
  readonly held: BacklogPart;
  /** Whether all were counted. Otherwise there are at least as many of each as it says. */
  readonly isWhole: boolean;
}

interface BacklogPart {
  readonly deliveries: number;
  /** Milliseconds since the epoch; `undefined` where there is none, or no such time. */
  readonly sinceMs: number | undefined;
}
