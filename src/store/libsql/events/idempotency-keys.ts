import type { ActionInForce, KeyUse } from "../../rules/recording.ts";
import { type Sql, timeOf, wholeOf } from "../thread/sql.ts";
import type { EventBatch, Incoming } from "../queue/wire.ts";

// A key belongs to the application of its action when it is used. An action can move to another application: its keys stay where
// they were used, and the action answers to them still.

/** Where a batch has so many keys, one query for the range between them costs less than a look-up of each. */
const MIN_RANGE_KEYS = 16;

/**
 * Whether no key of a batch can be in the file, as there is none between its first and its last. The keys of a bulk rise with its
 * lines, so that one query replaces five hundred, which were a sixth of the time.
 */
function isAllNew(sql: Sql, batch: readonly Incoming[]): boolean {
  if (batch.length < MIN_RANGE_KEYS) return false;
  let first: string | undefined;
  let last: string | undefined;
  for (const { idempotencyKey: key } of batch) {
    if (key === null) continue;
    if (first === undefined || key < first) first = key;
    if (last === undefined || key > last) last = key;
  }
  if (first === undefined || last === undefined) return true;
  // Keys are ASCII, which the engine and strings here order alike.
  const between = "SELECT 1 FROM event WHERE idempotency_key BETWEEN ? AND ? LIMIT 1";
  return sql.first(between, first, last) === undefined;
}

interface KeyUseRow extends Omit<KeyUse, "isSame"> {
  readonly action_id: number;
  /** Which candidate uses the key now. */
  readonly position: number;
  readonly is_same: number;
}

/**
 * Reads the stored events that have used the keys of candidates: those of the same application, and those of the same action
 * from before it came to that application. The engine compares the payloads, which could be gigabytes here.
 */
export function loadKeyUses(
  sql: Sql,
  batches: readonly EventBatch[],
  actions: ReadonlyMap<number, ActionInForce>,
  bytes: Uint8Array,
): ReadonlyMap<Incoming, KeyUse> {
  const candidates = batches
    .flatMap(({ events }) => (isAllNew(sql, events) ? [] : events))
    .filter(({ idempotencyKey }) => idempotencyKey !== null);
  if (candidates.length === 0) return new Map();
  const rows = sql.rows<KeyUseRow>(
    `SELECT e.rowid, ${timeOf("e.timestamped_ms")} AS timestampedMs, ${wholeOf("e.revision")} AS revision, e.action_id,
        c.value ->> 1 AS position,
        e.action_id = c.value ->> 2 AND e.payload = substr(?2, c.value ->> 3, c.value ->> 4) AS is_same
      FROM json_each(?1) AS c CROSS JOIN event AS e
      WHERE e.idempotency_key = c.value ->> 0
        AND (e.idempotency_application = c.value ->> 5 OR e.action_id = c.value ->> 2)`,
    JSON.stringify(
      // In SQL, `substr` counts from 1.
      candidates.map(({ idempotencyKey, actionId, offset, length }, position) => [
        idempotencyKey,
        position,
        actionId,
        offset + 1,
        length,
        actions.get(actionId)?.application,
      ]),
    ),
    bytes,
  );
  const uses = new Map<Incoming, KeyUse>();
  for (const { action_id, position, is_same, ...use } of rows) {
    const candidate = candidates[position]!;
    // Where an action has moved, its own event comes before one of its new application.
    if (uses.has(candidate) && action_id !== candidate.actionId) continue;
    uses.set(candidate, { ...use, isSame: is_same === 1 });
  }
  return uses;
}
