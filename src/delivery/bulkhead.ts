/**
 * What the last attempts of a subscription tell: that its handler answers soon, nothing yet, or that it is slow, hangs or
 * cannot be reached. The quick ones may have all the room there is, and always have some.
 */
export const QUICK = 0;
export const UNKNOWN = 1;
export const SLOW = 2;
export type Tier = typeof QUICK | typeof UNKNOWN | typeof SLOW;

/** Most of all attempts that may be those of subscriptions not known to be quick, and of slow ones among them. */
const UNPROVEN_PART = 3 / 4;
const SLOW_PART = 1 / 2;
/**
 * How much of what the slow ones leave of that those may have together of which nothing is known. They are known after a
 * second, one way or the other, so however many of them hang, there is soon some room for the next.
 */
const UNKNOWN_SHARE = 1 / 2;
/** How much of the room for slow ones one of them may have. */
const SLOW_SHARE = 1 / 8;

export interface Load {
  /** Most attempts under way. */
  readonly most: number;
  readonly underWay: number;
  /** Deliveries leased to subscriptions of which nothing is known, and to slow ones. */
  readonly unknown: number;
  readonly slow: number;
}

export function freeOf({ most, underWay }: Pick<Load, "most" | "underWay">): number {
  return Math.max(0, most - underWay);
}

/** How many deliveries more those of a tier may have leased. */
export function roomOfTier(tier: typeof UNKNOWN | typeof SLOW, load: Load): number {
  const { most, unknown, slow } = load;
  const unproven = Math.ceil(most * UNPROVEN_PART) - slow;
  const room =
    tier === SLOW
      ? Math.min(unproven - unknown, Math.ceil(most * SLOW_PART) - slow)
      : Math.max(1, Math.ceil(unproven * UNKNOWN_SHARE)) - unknown;
  return Math.max(0, Math.min(freeOf(load), room));
}

/**
 * Most attempts that one quick subscription may have under way: never more than are still free, so that however many are
 * busy, all have about the same and some are left for the next (the dynamic thresholds of shared-memory switches).
 */
export function mostOfQuick(window: number, free: number): number {
  return Math.max(1, Math.min(window, free));
}

/**
 * Most deliveries that one slow subscription may have leased. Each so takes a smaller part than the one before, until they
 * have one each.
 * @param room of all that are slow
 */
export function mostOfSlow(window: number, room: number): number {
  return Math.max(1, Math.min(window, Math.floor(room * SLOW_SHARE)));
}
