/** So many gaps at least, each with attempts at both ends, make up the time after which a subscription is deactivated. */
const LEAST_GAPS = 5;

/**
 * What counts at most of the time between two failed attempts, as nobody tried in it: a service that was stopped for a
 * week, or whose clock was set forward, must not find that all handlers have failed for a week. A handler that gets a
 * delivery a day is still found out.
 */
export function longestGapMs(disableAfterMs: number): number {
  return Math.ceil(disableAfterMs / LEAST_GAPS);
}

/** @param since ISO 8601 */
export function failingReason(since: string, lastError: string): string {
  return `Every attempt since ${since} has failed, the last with ${lastError}. Its deliveries are held until it is reactivated.`;
}
