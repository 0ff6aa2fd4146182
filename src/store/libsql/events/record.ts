import { type AcceptedEvent, type ActionInForce, Recording } from "../../rules/recording.ts";
import { receiversOf } from "../catalog/matching.ts";
import {
  ANY_KEYED,
  type KeyedReceivers,
  keyedReceivers,
  keysOfEvent,
  placeRecorded,
  KEY_WHEN_RECORDED,
  STATE_WHEN_RECORDED,
} from "../queue/key-order.ts";
import type { Sql } from "../thread/sql.ts";
import { countEvents } from "./counts.ts";
import { loadKeyUses } from "./idempotency-keys.ts";
import { eventChecksum } from "./payloads.ts";
import type { EventBatch, Incoming, WireRecordOutcome } from "../queue/wire.ts";
import { insertSegments, loadLastNumbers } from "./timeline.ts";

type AcceptedIncoming = AcceptedEvent<Incoming>;

/**
 * Records the events of many calls with a fixed number of statements: it reads what exists, decides on all events, then writes
 * set-wise.
 * @param bytes of the transaction, in which the payloads lie
 * @returns by call, the outcomes of its events; of a call that is not atomic only of the first ones, where all would be too many
 */
export function recordEvents(
  sql: Sql,
  batches: readonly EventBatch[],
  bytes: Uint8Array,
): readonly (readonly WireRecordOutcome[])[] {
  const actions = loadActions(sql, batches);
  const recording = new Recording<Incoming>({
    actions,
    storedUses: loadKeyUses(sql, batches, actions, bytes),
    last: loadLastNumbers(sql),
    haveSamePayload: (one, other) => Buffer.compare(payloadOf(one, bytes), payloadOf(other, bytes)) === 0,
  });
  const outcomes = batches.map((batch) => recording.decide(batch));
  const { accepted, segments } = recording;
  if (accepted.length > 0) {
    insertSegments(sql, segments);
    const [first, newest] = [accepted[0]!, accepted.at(-1)!];
    const alike = Map.groupBy(accepted, ({ actionId, timestampedMs }) => `${actionId} ${timestampedMs}`);
    for (const events of alike.values()) insertEvents(sql, events, bytes, actions.get(events[0]!.actionId)!);
    const isAnyAwaited = accepted.some(({ actionId }) => actions.get(actionId)!.subscribers > 0);
    if (isAnyAwaited) insertDeliveries(sql, first.rowid, newest.rowid, newest.nowMs);
    const orderKeys = accepted.flatMap((event) => {
      const { keyed } = actions.get(event.actionId)!;
      return keyed.length === 0 ? [] : keysOfEvent(event.rowid, payloadOf(event, bytes), keyed);
    });
    placeRecorded(sql, orderKeys, newest.nowMs);
    countEvents(sql, alike.values());
  }
  return outcomes;
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
function insertEvents(
  sql: Sql,
  events: readonly AcceptedIncoming[],
  bytes: Uint8Array,
  { revision, application }: RecordableAction,
): void {
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
  sql.run(
    `INSERT INTO event
        (rowid, action_id, revision, timestamped_ms, payload, checksum, idempotency_key, idempotency_application)
      SELECT value ->> 0, ?3, ?4, ?5, substr(?2, value ->> 1, value ->> 2), value ->> 3,
        ${isAnyKeyed ? "value ->> 4, iif(value ->> 4 IS NULL, NULL, ?6)" : "NULL, NULL"}
      FROM json_each(?1)`,
    JSON.stringify(rows),
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
function insertDeliveries(sql: Sql, first: number, last: number, nowMs: number): void {
  sql.run(
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
function loadActions(sql: Sql, batches: readonly EventBatch[]): ReadonlyMap<number, RecordableAction> {
  const actions = new Map<number, RecordableAction>();
  const ids = new Set(batches.flatMap(({ events }) => events.map(({ actionId }) => actionId)));
  for (const actionId of ids) {
    const row = sql.first<ActionInForce & { readonly any_keyed: number }>(
      `SELECT iif(a.retired_ms IS NULL, a.revision, NULL) AS revision, a.application, (SELECT count(*) FROM ${receiversOf("a.rowid")}) AS subscribers,
          ${ANY_KEYED} AS any_keyed
        FROM action AS a WHERE a.rowid = ?`,
      actionId,
    );
    if (row === undefined) continue;
    const { any_keyed, ...action } = row;
    const keyed = action.subscribers > 0 && any_keyed === 1 ? keyedReceivers(sql, actionId) : [];
    actions.set(actionId, { ...action, keyed });
  }
  return actions;
}
