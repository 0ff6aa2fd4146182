import type { SubscriptionAttempt } from "../../../domain/delivery.ts";

/** How an attempt stands in the strip: above the line, below it, or hollow on it, as it was cut short. */
export type AttemptKind = "delivered" | "failed" | "returned";

export function kindOf(attempt: SubscriptionAttempt): AttemptKind {
  return attempt.error_code === "interrupted" ? "returned" : attempt.outcome;
}

/** `HTTP 503`, `timeout`. */
export function answerOf(attempt: SubscriptionAttempt): string {
  if (attempt.status_code !== null) return `HTTP ${attempt.status_code}`;
  return attempt.error_code ?? "no answer";
}

const SHORTEST_MS = 1;
const LONGEST_MS = 60_000;

/** The height of a bar from 0 to 1, by the logarithm of how long it took: 50 ms and 500 ms are told apart, 60 s still fits. */
export function heightOf(durationMs: number): number {
  const ms = Math.min(Math.max(durationMs, SHORTEST_MS), LONGEST_MS);
  return 0.12 + (0.88 * Math.log(ms / SHORTEST_MS)) / Math.log(LONGEST_MS / SHORTEST_MS);
}

/**
 * Counts attempts: what the failed ones came to, the most frequent first, and how long those took that got an answer, `null`
 * without any.
 */
export function tallyOf(attempts: readonly SubscriptionAttempt[]) {
  const byKind = Map.groupBy(attempts, kindOf);
  const failed = byKind.get("failed") ?? [];
  const errors = [...Map.groupBy(failed, answerOf)]
    .map(([error, of]) => [error, of.length] as const)
    .toSorted(([, one], [, other]) => other - one);
  const times = attempts
    .filter((attempt) => kindOf(attempt) !== "returned")
    .map(({ duration_ms: ms }) => ms)
    .toSorted((one, other) => one - other);
  const rank = (share: number): number | null =>
    times[Math.max(0, Math.ceil(times.length * share) - 1)] ?? null;
  return {
    delivered: byKind.get("delivered")?.length ?? 0,
    failed: failed.length,
    returned: byKind.get("returned")?.length ?? 0,
    errors,
    p50: rank(0.5),
    p95: rank(0.95),
  };
}
