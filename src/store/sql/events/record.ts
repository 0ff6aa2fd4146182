import { type AcceptedEvent, type ActionInForce, type KeyUse, Recording } from "../../rules/recording.ts";
import { receiversOf } from "../catalog/matching.ts";
import {
  KEY_WHEN_RECORDED,
  type KeyedReceivers,
  keyedReceivers,
  keysOfEvent,
  placeRecorded,
  STATE_WHEN_RECORDED,
} from "../queue/key-order.ts";
import type { Sql } from "../sql.ts";
import { countEvents } from "./counts.ts";
import { eventChecksum } from "./payloads.ts";
import type { EventBatch, Incoming, WireRecordOutcome } from "../queue/wire.ts";
import { loadLastNumbers } from "./timeline.ts";

type AcceptedIncoming = AcceptedEvent<Incoming>;

/**
 * Records the events of many calls with a fixed number of statements: it reads what exists, decides on all events, then writes
 * set-wise.
 * @param bytes of the transaction, in which the payloads lie
 * @param maxAtomicDeliveries of each call that is atomic
 * @returns by call, the outcomes of its events; of a call that is not atomic only of the first ones, where all would be too many.
 * And the events that were stored, in groups of one action and time
 */
export async function recordEvents(
  sql: Sql,
  batches: readonly EventBatch[],
  bytes: Uint8Array,
  maxAtomicDeliveries = Infinity,
): Promise<{
  readonly outcomes: readonly (readonly WireRecordOutcome[])[];
  readonly alike: readonly (readonly AcceptedIncoming[])[];
}> {
  const actions = await loadActions(sql, batches);
  const recording = new Recording<Incoming>({
    actions,
    storedUses: await loadKeyUses(sql, batches, actions, bytes),
    last: await loadLastNumbers(sql),
    haveSamePayload: (one, other) => Buffer.compare(payloadOf(one, bytes), payloadOf(other, bytes)) === 0,
  });
  const outcomes = batches.map((batch) => recording.decide(batch, maxAtomicDeliveries));
  const { accepted } = recording;
  const groups = Map.groupBy(accepted, ({ actionId, timestampedMs }) => `${actionId} ${timestampedMs}`);
  const alike = [...groups.values()];
  if (accepted.length > 0) {
    const [first, newest] = [accepted[0]!, accepted.at(-1)!];
    for (const events of alike) await insertEvents(sql, events, bytes, actions.get(events[0]!.actionId)!);
    const isAnyAwaited = accepted.some(({ actionId }) => actions.get(actionId)!.subscribers > 0);
    if (isAnyAwaited) await insertDeliveries(sql, first.rowid, newest.rowid, newest.nowMs);
    const orderKeys = accepted.flatMap((event) => {
      const { keyed } = actions.get(event.actionId)!;
      return keyed.length === 0 ? [] : keysOfEvent(event.rowid, payloadOf(event, bytes), keyed);
    });
    await placeRecorded(sql, orderKeys, newest.nowMs);
    await countEvents(sql, first.rowid, newest.rowid);
  }
  return { outcomes, alike };
}

/** What differs among events of one action and time: where the payload lies, as `substr` counts, and the key where any has one. */
type EventCells = readonly [
  rowid: number,
  start: number,
  length: number,
  checksum: number,
  ...key: (string | null)[],
];

/**
 * Inserts events of one action and time, which nearly all of a commit are: values that they share are given once, as each one
 * that is taken out of the JSON costs a tenth of a microsecond or two. That makes a batch a quarter cheaper.
 */
async function insertEvents(
  sql: Sql,
  events: readonly AcceptedIncoming[],
  bytes: Uint8Array,
  { revision, application }: RecordableAction,
): Promise<void> {
  const { actionId, timestampedMs } = events[0]!;
  // The buffer is a byte longer than the payloads, as the driver binds an empty BLOB as NULL.
  const stored = new Uint8Array(events.reduce((sum, { length }) => sum + length, 1));
  const isAnyKeyed = events.some(({ idempotencyKey }) => idempotencyKey !== null);
  let end = 0;
  const rows = events.map((event): EventCells => {
    const payload = payloadOf(event, bytes);
    const checksum = eventChecksum(event.rowid, actionId, payload);
    stored.set(payload, end);
    const cells = [event.rowid, end + 1, payload.length, checksum] as const;
    end += payload.length;
    return isAnyKeyed ? [...cells, event.idempotencyKey] : cells;
  });
  await sql.run(
    `INSERT INTO event
        (rowid, action_id, revision, timestamped_ms, payload, checksum, idempotency_key, idempotency_application)
      SELECT id, ?3, ?4, ?5, substr(?2, start, length), checksum, ${isAnyKeyed ? "key, iif(key IS NULL, NULL, ?6)" : "NULL, NULL"}
      FROM list(?1: id bigint, start integer, length integer, checksum bigint, key text) AS e`,
    rows,
    stored,
    actionId,
    revision,
    timestampedMs,
    ...(isAnyKeyed ? [application] : []),
  );
}

/**
 * Makes the deliveries of stored events, in the order of the events, so that the rowids of both rise together. All are due but
 * those that are to be placed in an order.
 */
async function insertDeliveries(sql: Sql, first: number, last: number, nowMs: number): Promise<void> {
  await sql.run(
    `INSERT INTO delivery (event_id, subscription_id, created_ms, state, key, due_ms)
      SELECT e.rowid, s.rowid, e.timestamped_ms, ${STATE_WHEN_RECORDED}, ${KEY_WHEN_RECORDED}, iif(s.order_key IS NULL, min(e.timestamped_ms, ?3), NULL)
      FROM event AS e CROSS JOIN ${receiversOf("e.action_id")} AND e.rowid BETWEEN ?1 AND ?2
      ORDER BY e.rowid`,
    first,
    last,
    nowMs,
  );
}

function payloadOf({ offset, length }: Incoming, bytes: Uint8Array): Uint8Array {
  return bytes.subarray(offset, offset + length);
}

interface RecordableAction extends ActionInForce {
  /** The subscribers that have an order. */
  readonly keyed: KeyedReceivers;
}

/** Reads the existing actions that are named, one by one, as nearly all events name the same. */
async function loadActions(
  sql: Sql,
  batches: readonly EventBatch[],
): Promise<ReadonlyMap<number, RecordableAction>> {
  const actions = new Map<number, RecordableAction>();
  const ids = new Set(batches.flatMap(({ events }) => events.map(({ actionId }) => actionId)));
  for (const actionId of ids) {
    const action = await sql.first<Omit<ActionInForce, "isKeyed">>(
      `SELECT iif(a.retired_ms IS NULL, a.revision, NULL) AS revision, a.application, (SELECT count(*) FROM ${receiversOf("a.rowid")}) AS subscribers
        FROM action AS a WHERE a.rowid = ?`,
      actionId,
    );
    if (action === undefined) continue;
    const keyed = action.subscribers > 0 ? await keyedReceivers(sql, actionId) : [];
    const isKeyed = keyed.some(([, steps]) => steps.length > 0);
    actions.set(actionId, { ...action, keyed, isKeyed });
  }
  return actions;
}

// A key belongs to the application of its action when it is used. An action can move to another application: its keys stay where
// they were used, and the action answers to them still.

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
async function loadKeyUses(
  sql: Sql,
  batches: readonly EventBatch[],
  actions: ReadonlyMap<number, ActionInForce>,
  bytes: Uint8Array,
): Promise<ReadonlyMap<Incoming, KeyUse>> {
  const candidates = batches.flatMap(({ events }) =>
    events.filter(({ idempotencyKey }) => idempotencyKey !== null),
  );
  if (candidates.length === 0) return new Map();
  const rows = await sql.rows<KeyUseRow>(
    `SELECT e.rowid, e.timestamped_ms AS timestampedMs, e.revision, e.action_id,
        c.position, e.action_id = c.action_id AND e.payload = substr(?2, c.start, c.length) AS is_same
      FROM list(?1: key text, position integer, action_id bigint, start integer, length integer, application text) AS c
      CROSS JOIN event AS e
      WHERE e.idempotency_key = c.key AND (e.idempotency_application = c.application OR e.action_id = c.action_id)`,
    // In SQL, `substr` counts from 1.
    candidates.map(({ idempotencyKey, actionId, offset, length }, position) => [
      idempotencyKey,
      position,
      actionId,
      offset + 1,
      length,
      actions.get(actionId)?.application,
    ]),
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
