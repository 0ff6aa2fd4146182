import { BytesOut } from "./bytes-out.ts";
import { eventChecksum } from "./event-checksum.ts";
import { addPayloads, PAYLOAD_BYTES } from "./payload-reads.ts";
import type { Candidate } from "./record-call.ts";
import { type Sql, timeOf, wholeOf } from "./sql.ts";

export interface ActionState {
  /** The revision in force; `null` once it is retired, as nothing is recorded under any then. */
  readonly revision: number | null;
  /** Active subscriptions now. */
  readonly subscribers: number;
}

/** An event in the file that used a key before. */
export interface KeyUse {
  readonly rowid: number;
  readonly timestampedMs: number;
  readonly revision: number;
  /** Places of the candidates with this key that have the same action and payload. */
  readonly sameAs: ReadonlySet<number>;
}

export interface Ends {
  /** The largest rowids ever given. */
  readonly event: number;
  readonly delivery: number;
  /** The time of the last event or delivery since the clock was set back, whichever is later; 0 when there is none. */
  readonly lastMs: number;
}

export function loadEnds(sql: Sql): Ends {
  const row = sql.first<{ event: number | null; delivery: number | null; last_ms: number }>(
    `WITH step (event, delivery) AS (
        SELECT first_event, first_delivery FROM clock_step WHERE rowid = (SELECT max(rowid) FROM clock_step)
      )
      SELECT (SELECT seq FROM sqlite_sequence WHERE name = 'event') AS event,
        (SELECT seq FROM sqlite_sequence WHERE name = 'delivery') AS delivery,
        max(
          coalesce((SELECT ${timeOf("timestamped_ms")} FROM event WHERE rowid = (SELECT max(rowid) FROM event)
            AND rowid >= coalesce((SELECT event FROM step), 0)), 0),
          coalesce((SELECT ${timeOf("created_ms")} FROM delivery WHERE rowid = (SELECT max(rowid) FROM delivery)
            AND rowid >= coalesce((SELECT delivery FROM step), 0)), 0)
        ) AS last_ms`,
  );
  return { event: row?.event ?? 0, delivery: row?.delivery ?? 0, lastMs: row?.last_ms ?? 0 };
}

/** The state of each action the candidates name; none for one that does not exist. Asked one by one: most name the same. */
export function loadActionStates(
  sql: Sql,
  candidates: readonly Candidate[],
): ReadonlyMap<number, ActionState> {
  const states = new Map<number, ActionState>();
  const asked = new Set<number>();
  for (const { actionId } of candidates) {
    if (asked.has(actionId)) continue;
    asked.add(actionId);
    const state = sql.first<ActionState>(
      `SELECT iif(a.retired_ms IS NULL, a.revision, NULL) AS revision, (SELECT count(*) FROM subscription AS s
          WHERE s.action_id = a.rowid AND s.active = 1 AND s.deleted_ms IS NULL) AS subscribers
        FROM action AS a WHERE a.rowid = ?`,
      actionId,
    );
    if (state !== undefined) states.set(actionId, state);
  }
  return states;
}

/** From so many keys on, one look at all there is between them costs less than one at each. */
const KEYS_WORTH_A_LOOK = 16;

/**
 * Whether no key of a batch can be in the file, as there is none between its first and its last. Those of a bulk rise with
 * its lines, so that this one look stands for five hundred, which were a sixth of what recording them took.
 */
function isAllNew(sql: Sql, batch: readonly Candidate[]): boolean {
  if (batch.length < KEYS_WORTH_A_LOOK) return false;
  let first: string | undefined;
  let last: string | undefined;
  for (const { key } of batch) {
    if (key === null) continue;
    if (first === undefined || key < first) first = key;
    if (last === undefined || key > last) last = key;
  }
  // Keys are ASCII, which the engine and strings here order alike.
  if (first === undefined || last === undefined) return true;
  const found = sql.first<{ used: number }>(
    "SELECT EXISTS (SELECT 1 FROM event WHERE idempotency_key BETWEEN ? AND ?) AS used",
    first,
    last,
  );
  return found?.used === 0;
}

interface StoredUse {
  readonly key: string;
  readonly id: number;
  readonly timestamped_ms: number;
  readonly revision: number;
  readonly action_id: number;
  readonly checksum: number | null;
  /** Of the payload. */
  readonly bytes: number;
  /** Of the candidate that used the key now. */
  readonly place: number;
  readonly same: number;
}

/**
 * The events in the file that used the candidates' keys. Whether the payloads are equal is decided in the engine:
 * reading back a batch of large ones to compare them here could take gigabytes.
 */
export function loadKeyUses(
  sql: Sql,
  batches: readonly (readonly Candidate[])[],
  bytes: Uint8Array,
): ReadonlyMap<string, KeyUse> {
  const asked = batches
    .flatMap((batch) => (isAllNew(sql, batch) ? [] : batch))
    .flatMap(({ key, place, actionId, offset, length }) =>
      // substr counts from 1.
      key === null ? [] : [[key, place, actionId, offset + 1, length]],
    );
  if (asked.length === 0) return new Map();
  const rows = sql.rows<StoredUse>(
    `SELECT e.idempotency_key AS key, e.rowid AS id, ${timeOf("e.timestamped_ms")} AS timestamped_ms,
        ${wholeOf("e.revision")} AS revision, c.value ->> 1 AS place,
        e.action_id, e.checksum, ${PAYLOAD_BYTES} AS bytes,
        e.action_id = c.value ->> 2 AND e.payload = substr(?2, c.value ->> 3, c.value ->> 4) AS same
      FROM json_each(?1) AS c CROSS JOIN event AS e
      WHERE e.idempotency_key = c.value ->> 0`,
    JSON.stringify(asked),
    bytes,
  );
  const uses = new Map<string, KeyUse & { readonly sameAs: Set<number> }>();
  const candidates = batches.flat();
  for (const row of rows) {
    const { key, id, timestamped_ms: timestampedMs, revision, place, same } = row;
    const use = uses.get(key) ?? { rowid: id, timestampedMs, revision, sameAs: new Set<number>() };
    if (same === 1 || wasSame(sql, row, candidates[place]!, bytes)) use.sameAs.add(place);
    uses.set(key, use);
  }
  return uses;
}

/** Whether the stored payload is damaged, and this is the one that it was. */
function wasSame(
  sql: Sql,
  { id, action_id, checksum, bytes: payloadBytes }: StoredUse,
  { actionId, offset, length }: Candidate,
  bytes: Uint8Array,
): boolean {
  if (
    actionId !== action_id ||
    eventChecksum(id, actionId, bytes.subarray(offset, offset + length)) !== checksum
  ) {
    return false;
  }
  return addPayloads(sql, [{ eventId: id, payloadBytes }], new BytesOut()).get(id) === null;
}
