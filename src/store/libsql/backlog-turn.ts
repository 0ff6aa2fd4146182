import { LONGEST_ORDERED_MS, LONGEST_SLOWNESS_MS } from "./claim-due.ts";
import type { SubscriptionWithDue } from "./delivery-ids.ts";
import { ASKED_BY_MS, plannedMs } from "./delivery-row.ts";

/** What of a subscription may be sent now. */
export interface Turn {
  readonly id: number;
  readonly isActive: boolean;
  /** What is due later than this waits. */
  readonly dueByMs: number;
  /** Nothing was due before, but for what persons asked for. */
  readonly notBeforeMs: number;
  readonly leasedDue: number;
  readonly leasedLater: number;
  /** Whether the first of those that are due later may be sent all the same. */
  readonly isHeadDue: boolean;
}

/** As `claimDue` has it: of one that is slowed only what persons asked for, of an ordered one its first when it has none leased. */
export function turnOf(
  { id, isActive, isOrdered, slowedUntilMs }: SubscriptionWithDue,
  { leased, asked }: { leased: number; asked: number },
  nowMs: number,
): Turn {
  const longestMs = isOrdered ? LONGEST_ORDERED_MS : LONGEST_SLOWNESS_MS;
  const untilMs = slowedUntilMs !== null && slowedUntilMs <= nowMs + longestMs ? slowedUntilMs : 0;
  const isSlowed = untilMs > nowMs;
  const common = { id, isActive, notBeforeMs: isActive ? untilMs : 0 };
  if (isActive && (isSlowed || isOrdered)) {
    const isHeadDue = !isSlowed && leased === 0;
    return { ...common, dueByMs: ASKED_BY_MS, leasedDue: asked, leasedLater: leased - asked, isHeadDue };
  }
  // Those under way are among the due ones.
  const dueByMs = isOrdered ? Number.MAX_SAFE_INTEGER : nowMs;
  return { ...common, dueByMs, leasedDue: leased, leasedLater: 0, isHeadDue: false };
}

/** Since when it might have been sent. @param firstDueMs the `due_ms` of the first, or when it was made */
export function sinceOf(firstDueMs: number | null, notBeforeMs: number): number | undefined {
  if (firstDueMs === null) return undefined;
  return firstDueMs <= ASKED_BY_MS ? plannedMs(firstDueMs)! : Math.max(firstDueMs, notBeforeMs);
}
