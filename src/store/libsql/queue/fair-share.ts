import type { ClaimQuota, TierLimit } from "../../queue.ts";
import { type Sql, timeOf } from "../thread/sql.ts";
import { NORMAL, REQUESTED } from "./delivery-state.ts";

/** A subscription with capacity and pending deliveries. */
export interface Claimable extends ClaimQuota {
  readonly id: number;
  readonly isOrdered: boolean;
  /** May be sent: what is due by then, and what a person requested. `Infinity`: all, in order. */
  readonly dueByMs: number;
  /** What comes due later is not sent before this. */
  readonly notBeforeMs: number;
}

export interface Picked {
  /** In the order in which they are claimed. */
  readonly chosen: readonly Candidate[];
  /** When the first comes due that is not yet. */
  readonly nextDueAtMs: number | undefined;
  /** Of which more may be due than the limits allowed. */
  readonly cutTiers: ReadonlySet<number>;
}

/** A delivery that is due. */
interface Candidate extends Pick<TierLimit, "isNewestFirst"> {
  readonly id: number;
  readonly priority: number;
  readonly dueMs: number;
  readonly tier: number;
  /** How many its subscription would then have leased; the fewer, the sooner. */
  readonly rank: number;
}

interface Offer {
  readonly claimable: Claimable;
  readonly candidates: readonly Candidate[];
  readonly nextDueAtMs: number | undefined;
  /** Whether it has capacity for more, and may have more due. */
  readonly hasMore: boolean;
}

/** In each round others get what those with less than their share left over; the rest is for the next claim. */
const MAX_ROUNDS = 3;

/**
 * Picks due deliveries in turns: the first of each subscription that has none leased, then the second of those and the first of
 * each that has one, and so on. Among equals tiers with the newest first come before the others.
 */
export function selectFairly(
  sql: Sql,
  claimables: readonly Claimable[],
  tiers: readonly TierLimit[],
): Picked {
  const offers = tiers.flatMap((limit, tier) =>
    loadCandidates(
      sql,
      claimables.filter((claimable) => claimable.tier === tier),
      limit,
    ),
  );
  const candidates = offers.flatMap((offer) => offer.candidates);
  if (offers.length > 1) candidates.sort(byTurn);
  const remaining = tiers.map(({ maxClaims }) => maxClaims);
  const cutTiers = new Set(offers.flatMap(({ hasMore, claimable }) => (hasMore ? [claimable.tier] : [])));
  const chosen: Candidate[] = [];
  for (const candidate of candidates) {
    const { tier } = candidate;
    if (remaining[0] === 0 || remaining[tier] === 0) {
      cutTiers.add(remaining[0] === 0 ? 0 : tier);
      continue;
    }
    remaining[0]! -= 1;
    if (tier > 0) remaining[tier]! -= 1;
    chosen.push(candidate);
  }
  const nextDueAtMs = offers.reduce<number | undefined>(
    (earliest, offer) => earliestOf(earliest, offer.nextDueAtMs),
    undefined,
  );
  return { chosen, nextDueAtMs, cutTiers };
}

function byTurn(a: Candidate, b: Candidate): number {
  if (a.rank !== b.rank) return a.rank - b.rank;
  if (a.priority !== b.priority) return a.priority - b.priority;
  if (a.isNewestFirst !== b.isNewestFirst) return a.isNewestFirst ? -1 : 1;
  const order = a.dueMs - b.dueMs || a.id - b.id;
  return a.isNewestFirst ? -order : order;
}

/** Takes a fair share of the limit from each, and what some do not use from those that have more. */
function loadCandidates(
  sql: Sql,
  claimables: readonly Claimable[],
  { maxClaims, isNewestFirst }: TierLimit,
): Offer[] {
  const settled: Offer[] = [];
  let open = claimables;
  let missing = maxClaims;
  for (let round = 1; open.length > 0; round += 1) {
    const level = fairLevel(open, missing);
    const offers = loadAll(sql, open, level, isNewestFirst);
    const onward = offers.filter(({ hasMore }) => hasMore);
    if (round === MAX_ROUNDS || onward.length === offers.length) return [...settled, ...offers];
    for (const offer of offers) {
      if (offer.hasMore) continue;
      settled.push(offer);
      missing -= offer.candidates.length;
    }
    open = onward.map(({ claimable }) => claimable);
  }
  return settled;
}

/** The lowest number of leases that uses the limit when all subscriptions are filled up to it. */
function fairLevel(claimables: readonly Claimable[], limit: number): number {
  let low = 0;
  let high = claimables.reduce(
    (max, { leased, capacity }) => Math.max(max, leased + Math.min(capacity, limit)),
    0,
  );
  while (low < high) {
    const level = Math.floor((low + high) / 2);
    let taken = 0;
    for (const claimable of claimables) taken += shareAt(claimable, level);
    if (taken >= limit) high = level;
    else low = level + 1;
  }
  return low;
}

function shareAt({ leased, capacity }: Claimable, level: number): number {
  return Math.max(0, Math.min(capacity, level - leased));
}

function loadAll(sql: Sql, claimables: readonly Claimable[], level: number, isNewestFirst: boolean): Offer[] {
  // One statement reads the same number of rows for all, so those with about the same need are read together.
  const byNeed = new Map<number, Claimable[]>();
  const offers: Offer[] = [];
  for (const claimable of claimables) {
    const share = shareAt(claimable, level);
    if (share === 0) {
      offers.push({ claimable, candidates: [], nextDueAtMs: undefined, hasMore: true });
      continue;
    }
    const need = 4 ** Math.ceil(Math.log2(share) / 2);
    const group = byNeed.get(need);
    if (group === undefined) byNeed.set(need, [claimable]);
    else group.push(claimable);
  }
  for (const group of byNeed.values()) {
    const waiting = loadWaiting(sql, group, Math.max(...group.map((one) => shareAt(one, level))) + 1);
    for (const [index, claimable] of group.entries()) {
      offers.push(offerOf(claimable, waiting[index]!, shareAt(claimable, level), isNewestFirst));
    }
  }
  return offers;
}

type WaitingRow = readonly [priority: number, dueMs: number, id: number];

/** A delivery whose time or sequence is no number is never claimed. */
const NOT_LEASED = "NOT EXISTS (SELECT 1 FROM lease AS l WHERE l.delivery_id = w.rowid)";
const BY_DUE = `SELECT w.priority, w.due_ms AS ms, w.rowid FROM delivery AS w INDEXED BY delivery_due
  WHERE w.subscription_id = requested.value AND w.due_ms <= ${Number.MAX_SAFE_INTEGER} AND ${NOT_LEASED}`;
const REQUESTED_FIRST = `${BY_DUE} AND w.priority = ${REQUESTED} ORDER BY w.due_ms, w.rowid`;
const ALL_BY_DUE = `${BY_DUE} ORDER BY w.priority, w.due_ms, w.rowid`;
const ALL_IN_SEQUENCE = `SELECT w.priority, ${timeOf("w.created_ms")} AS ms, w.rowid
  FROM delivery AS w INDEXED BY delivery_sequence
  WHERE w.subscription_id = requested.value AND w.sequence <= ${Number.MAX_SAFE_INTEGER} AND w.priority = ${NORMAL}
    AND w.due_ms IS NOT NULL AND ${NOT_LEASED} ORDER BY w.sequence`;

/** The first `limit` pending deliveries of each that are not leased, due or not; of ordered ones, with when they were made. */
function loadWaiting(sql: Sql, claimables: readonly Claimable[], limit: number): WaitingRow[][] {
  const inSequence = claimables.filter(({ dueByMs }) => dueByMs === Infinity);
  const rows = new Map<number, WaitingRow[]>();
  const load = (some: readonly Claimable[], query: string): void => {
    if (some.length === 0) return;
    const found = sql.first<{ rows: string }>(
      `SELECT json_group_array(json((
          SELECT json_group_array(json_array(priority, ms, rowid)) FROM (${query} LIMIT ?2)))) AS rows
        FROM json_each(?1) AS requested`,
      JSON.stringify(some.map(({ id }) => id)),
      limit,
    )!;
    for (const [index, own] of (JSON.parse(found.rows) as WaitingRow[][]).entries()) {
      const { id } = some[index]!;
      rows.set(id, [...(rows.get(id) ?? []), ...own]);
    }
  };
  load(
    claimables.filter(({ dueByMs }) => dueByMs < Infinity),
    ALL_BY_DUE,
  );
  load(inSequence, REQUESTED_FIRST);
  load(inSequence, ALL_IN_SEQUENCE);
  return claimables.map(({ id }) => rows.get(id)!);
}

function offerOf(
  claimable: Claimable,
  waiting: readonly WaitingRow[],
  share: number,
  isNewestFirst: boolean,
): Offer {
  const { tier, leased, isOrdered, dueByMs, notBeforeMs } = claimable;
  const candidates: Candidate[] = [];
  let nextDueAtMs: number | undefined;
  let hasMore = false;
  for (const [priority, dueMs, id] of waiting) {
    if (priority !== REQUESTED && dueMs > dueByMs) {
      if (candidates.length < claimable.capacity) nextDueAtMs = Math.max(isOrdered ? 0 : dueMs, notBeforeMs);
      break;
    }
    if (candidates.length === share) {
      hasMore = share < claimable.capacity;
      break;
    }
    const rank = leased + candidates.length + 1;
    candidates.push({ id, priority, dueMs, tier, isNewestFirst, rank });
  }
  return { claimable, candidates, nextDueAtMs, hasMore };
}

/** The earlier of two times, where `undefined` is no time at all. */
export function earliestOf(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? (one ?? other) : Math.min(one, other);
}
