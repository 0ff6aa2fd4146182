// Several nodes share the deliveries by subscription, so that each subscription has one owner, which keeps its limits and its order.

/** Subscriptions are shared out in so many parts. */
export const SHARDS = 128;
export const ALL_SHARDS: readonly number[] = Array.from({ length: SHARDS }, (_, id) => id);

/** Nodes of two versions work side by side while they are replaced, so this must not change. */
export function shardOf(subscription: number): number {
  return subscription % SHARDS;
}

/** An odd number beside the golden section of the shards, which leaves any two neighbours far from each other. */
const STEP = 79;

/** Subscriptions are numbered one after the other, so a node with neighbouring shards would have all of the first ones. */
function placeOf({ id }: Shard): number {
  return (id * STEP) % SHARDS;
}

export interface Shard {
  readonly id: number;
  /** The node that has it; `null` for none. */
  readonly node: string | null;
  /** Whether its node claims nothing of it any more, and gives it up once nothing of it is under way. */
  readonly isLeaving: boolean;
}

export interface ShardChanges {
  /** The shards that it claims from now on. */
  readonly taken: readonly number[];
  /** The shards that it claims no more. */
  readonly leaving: readonly number[];
}

/**
 * Says what a node does so that all have as many shards as each other, or one more, and as few as possible move. Each node does its
 * part, one after the other: those that have too many leave some, and whoever has too few takes what is free.
 * @param nodes all that deliver, this one among them
 * @param shards all of them
 */
export function shareShards(nodes: readonly string[], shards: readonly Shard[], node: string): ShardChanges {
  const all = shards.toSorted((one, other) => placeOf(one) - placeOf(other));
  const claimed = Map.groupBy(
    all.filter(({ isLeaving }) => !isLeaving),
    (shard) => shard.node,
  );
  const countOf = (one: string): number => claimed.get(one)?.length ?? 0;
  // Nodes that claim most keep one more, where not all can have as many.
  const ranked = nodes.toSorted((one, other) => countOf(other) - countOf(one) || (one < other ? -1 : 1));
  const extra = ranked.indexOf(node) < all.length % nodes.length ? 1 : 0;
  const quota = Math.floor(all.length / nodes.length) + extra;
  const own = claimed.get(node) ?? [];
  if (own.length >= quota) return { taken: [], leaving: own.slice(quota).map(({ id }) => id) };
  const left = all.filter((shard) => shard.node === node && shard.isLeaving);
  const available = [...left, ...(claimed.get(null) ?? [])];
  return { taken: available.slice(0, quota - own.length).map(({ id }) => id), leaving: [] };
}
