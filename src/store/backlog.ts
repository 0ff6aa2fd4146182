/** Unfinished deliveries, each in one of the parts; those of deleted subscriptions in none. */
export interface Backlog {
  /**
   * To be sent now, and nothing else of their subscriptions is under way. `sinceMs`: when the first of them came due; an
   * ordered one, when it was made or had waited its time.
   */
  readonly due: BacklogPart;
  /** The same behind others of their subscriptions that are under way: for what a handler takes at once, or may have. */
  readonly busy: BacklogPart;
  /** The same of subscriptions with a rate limit, busy or not, which may have to wait for it. */
  readonly paced: BacklogPart;
  /** To be sent at a time to come, once its subscription is not slowed any more, or after another that comes before it. */
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
