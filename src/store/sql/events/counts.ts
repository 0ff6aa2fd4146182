import type { RowidRange } from "../../events.ts";
import type { Sql } from "../sql.ts";

// How many events of each action are in each block of rowids is counted in the transaction that stores or deletes them. A range
// consists of large blocks, small ones before and behind these, and single rowids at its ends, which the index counts. So its total
// is the sum of a few runs of rows, however many events there are. A block without events has no count: the millions of blocks that
// a restore skips (see `files/id-reservation.ts`) and those that retention has emptied must cost nothing.

const SMALL = 1_024;
const LARGE = 128 * SMALL;

/** How many rowids the blocks have, the largest first; this is part of the form of the data. */
export const BLOCK_SIZES = [LARGE, SMALL] as const;

/** The number that stands for all actions together. */
export const ALL_ACTIONS = 0;

/** Blocks of a size that follow each other, or the rowids from `first` to `last`, whose size is 1. */
export interface BlockRun {
  readonly size: number;
  readonly first: number;
  readonly last: number;
}

/** Divides a range into blocks, each as large as fits, in their order. */
export function blocksOf(range: RowidRange, sizes: readonly number[] = BLOCK_SIZES): readonly BlockRun[] {
  const { low, high } = range;
  if (low > high) return [];
  const [size = 1, ...smaller] = sizes;
  const first = Math.ceil(low / size);
  const last = Math.floor((high + 1) / size) - 1;
  if (first > last) return blocksOf(range, smaller);
  return [
    ...blocksOf({ low, high: first * size - 1 }, smaller),
    { size, first, last },
    ...blocksOf({ low: (last + 1) * size, high }, smaller),
  ];
}

export function rangeOf({ size, first, last }: BlockRun): RowidRange {
  return { low: first * size, high: (last + 1) * size - 1 };
}

interface CountedEvent {
  readonly rowid: number;
  readonly actionId: number;
}

/** A row of `event_count`: how many events of the action a block has. */
type BlockCount = readonly [actionId: number, size: number, block: number, events: number];

const BLOCK_COUNTS = "list(?: action_id bigint, size bigint, block bigint, events bigint) AS changed";

/** Counts events by action and block. Each group has events of one action. */
function countsOf(groups: Iterable<readonly CountedEvent[]>): readonly BlockCount[] {
  const counts = new Map<string, BlockCount>();
  for (const events of groups) {
    const { actionId } = events[0]!;
    const blocks = Map.groupBy(events, ({ rowid }) => Math.floor(rowid / SMALL));
    for (const [small, { length }] of blocks) {
      for (const size of BLOCK_SIZES) {
        const block = Math.floor((small * SMALL) / size);
        for (const action of [actionId, ALL_ACTIONS]) {
          const key = `${action} ${size} ${block}`;
          counts.set(key, [action, size, block, (counts.get(key)?.[3] ?? 0) + length]);
        }
      }
    }
  }
  return [...counts.values()];
}

/** Adds stored events to the counts of their blocks. Each group has events of one action. */
export async function countEvents(sql: Sql, groups: Iterable<readonly CountedEvent[]>): Promise<void> {
  await sql.run(
    `INSERT INTO event_count (action_id, size, block, events)
      SELECT action_id, size, block, events FROM ${BLOCK_COUNTS} WHERE true
      ON CONFLICT (action_id, size, block) DO UPDATE SET events = event_count.events + excluded.events`,
    countsOf(groups),
  );
}

/** Counts all events of a file that was just upgraded, which has no counts. */
export async function countStoredEvents(sql: Sql): Promise<void> {
  if ((await sql.first("SELECT 1 FROM event_count LIMIT 1")) !== undefined) return;
  await sql.run(
    `INSERT INTO event_count (action_id, size, block, events)
      SELECT action_id, ${SMALL}, rowid / ${SMALL}, count(*) FROM event INDEXED BY event_action GROUP BY 1, 3`,
  );
  await sql.run(
    `INSERT INTO event_count (action_id, size, block, events)
      SELECT action_id, ${LARGE}, block * ${SMALL} / ${LARGE}, sum(events) FROM event_count GROUP BY 1, 3`,
  );
  await sql.run(
    `INSERT INTO event_count (action_id, size, block, events)
      SELECT ${ALL_ACTIONS}, size, block, sum(events) FROM event_count GROUP BY size, block`,
  );
}

/**
 * Deletes events to which nothing refers any more, and subtracts them from the counts of their blocks. Answers how many there
 * were. Events are deleted nowhere else, as a count that does not follow stays wrong.
 */
export async function deleteEvents(sql: Sql, gone: readonly number[]): Promise<number> {
  const events = await sql.rows<CountedEvent>(
    "SELECT e.rowid, e.action_id AS actionId FROM event AS e WHERE e.rowid IN list(?: id bigint)",
    gone,
  );
  const groups = Map.groupBy(events, ({ actionId }) => actionId);
  const counts = countsOf(groups.values());
  await sql.run(
    `UPDATE event_count SET events = event_count.events - changed.events FROM ${BLOCK_COUNTS}
      WHERE event_count.action_id = changed.action_id AND event_count.size = changed.size AND event_count.block = changed.block`,
    counts,
  );
  await sql.run(
    `DELETE FROM event_count WHERE events = 0
      AND (action_id, size, block) IN (SELECT action_id, size, block FROM ${BLOCK_COUNTS})`,
    counts,
  );
  return await sql.run("DELETE FROM event WHERE rowid IN list(?: id bigint)", gone);
}
