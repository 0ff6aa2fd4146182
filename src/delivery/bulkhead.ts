/**
 * What the last attempts of a subscription tell: that its handler answers soon, nothing yet, or that it is slow, hangs or
 * cannot be reached. A higher tier may have less of the room there is, and never that of a lower one.
 */
export const QUICK = 0;
export const UNKNOWN = 1;
export const SLOW = 2;
export type Tier = typeof QUICK | typeof UNKNOWN | typeof SLOW;

/** Most of all attempts that may be those of subscriptions not known to be quick, and of slow ones among them. */
const UNPROVEN_PART = 3 / 4;
const SLOW_PART = 1 / 2;
/** How much of what is free one subscription may have that is not known to be quick. */
const UNPROVEN_SHARE = 1 / 8;

export interface Load {
  /** Most attempts under way. */
  readonly most: number;
  readonly underWay: number;
  /** Deliveries leased to subscriptions that are not known to be quick, and to slow ones among them. */
  readonly unproven: number;
  readonly slow: number;
}

export function freeOf({ most, underWay }: Load): number {
  return Math.max(0, most - underWay);
}

/** How many deliveries more those of a tier and of all above it may have leased. */
export function roomOfTier(tier: typeof UNKNOWN | typeof SLOW, load: Load): number {
  const free = freeOf(load);
  const unproven = Math.min(free, Math.ceil(load.most * UNPROVEN_PART) - load.unproven);
  if (tier === UNKNOWN) return Math.max(0, unproven);
  return Math.max(0, Math.min(unproven, Math.ceil(load.most * SLOW_PART) - load.slow));
}

/**
 * Most attempts that one quick subscription may have under way: never more than are still free, so that however many are
 * busy, all have about the same and some are left for the next (the dynamic thresholds of shared-memory switches).
 */
export function mostOfQuick(window: number, free: number): number {
  return Math.max(1, Math.min(window, free));
}

/**
 * Most deliveries that one other may have leased. Each handler that hangs so takes a smaller part than the one before,
 * until they have one each.
 * @param room of its tier
 */
export function mostOfUnproven(window: number, room: number): number {
  return Math.max(1, Math.min(window, Math.floor(room * UNPROVEN_SHARE)));
}
