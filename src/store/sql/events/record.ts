import type { EventRecord, RecordOutcome } from "../../events.ts";
import {
  type AcceptedEvent,
  type ActionInForce,
  type KeyUse,
  Recording,
  type RecordingCall,
} from "../../rules/recording.ts";
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
import { loadLastNumbers } from "./timeline.ts";

/**
 * Records the events of many calls with a fixed number of statements: it reads what exists, decides on all events, then writes
 * set-wise.
 * @param maxAtomicDeliveries of each call that is atomic
 * @returns by call, the outcomes of its events; of a call that is not atomic only of the first ones, where all would be too many.
 * And the events that were stored, in groups of one action and time
 */
export async function recordEvents(
  sql: Sql,
  calls: readonly RecordingCall[],
  maxAtomicDeliveries = Infinity,
): Promise<{
  readonly outcomes: readonly (readonly RecordOutcome[])[];
  readonly alike: readonly (readonly AcceptedEvent[])[];
}> {
  const candidates = calls.flatMap(({ events }) => events);
  const nowMs = calls.reduce((latest, call) => Math.max(latest, call.nowMs), -Infinity);
  const actions = await loadActions(sql, candidates);
  const storedUses = await loadKeyUses(sql, candidates, actions);
  const recording = new Recording({ actions, storedUses, last: await loadLastNumbers(sql) });
  const outcomes = calls.map((call) => recording.decide(call, maxAtomicDeliveries));
  const { accepted } = recording;
  const groups = Map.groupBy(accepted, ({ actionId, timestampedMs }) => `${actionId} ${timestampedMs}`);
  const alike = [...groups.values()];
  if (accepted.length > 0) {
    const [first, newest] = [accepted[0]!, accepted.at(-1)!];
    for (const events of alike) await insertEvents(sql, events, actions.get(events[0]!.actionId)!);
    const isAnyAwaited = accepted.some(({ actionId }) => actions.get(actionId)!.subscribers > 0);
    if (isAnyAwaited) await insertDeliveries(sql, first.rowid, newest.rowid, nowMs);
    const orderKeys = accepted.flatMap((event) => {
      const { keyed } = actions.get(event.actionId)!;
      return keyed.length === 0 ? [] : keysOfEvent(event.rowid, event.payload, keyed);
    });
    await placeRecorded(sql, orderKeys, nowMs);
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
  events: readonly AcceptedEvent[],
  { revision, application }: RecordableAction,
): Promise<void> {
  const { actionId, timestampedMs } = events[0]!;
  // The buffer is a byte longer than the payloads, as the driver binds an empty BLOB as NULL.
  const stored = new Uint8Array(events.reduce((sum, { payload }) => sum + payload.length, 1));
  const isAnyKeyed = events.some(({ idempotencyKey }) => idempotencyKey !== undefined);
  let end = 0;
  const rows = events.map(({ rowid, payload, idempotencyKey }): EventCells => {
    const checksum = eventChecksum(rowid, actionId, payload);
    stored.set(payload, end);
    const cells = [rowid, end + 1, payload.length, checksum] as const;
    end += payload.length;
    return isAnyKeyed ? [...cells, idempotencyKey ?? null] : cells;
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

interface RecordableAction extends ActionInForce {
  /** The subscribers that have an order. */
  readonly keyed: KeyedReceivers;
}

/** Reads the existing actions that are named, one by one, as nearly all events name the same. */
async function loadActions(
  sql: Sql,
  candidates: readonly EventRecord[],
): Promise<ReadonlyMap<number, RecordableAction>> {
  const actions = new Map<number, RecordableAction>();
  for (const actionId of new Set(candidates.map((candidate) => candidate.actionId))) {
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
  /** Which candidate uses the key now. */
  readonly position: number;
  /** Whether it has the candidate's action, and a payload of the same length. */
  readonly isAlike: number;
}

/**
 * Reads the stored events that have used the keys of candidates: those of the same application, and those of the same action
 * from before it came to that application. Of the payloads, which could be gigabytes, those of the same length are read.
 */
async function loadKeyUses(
  sql: Sql,
  all: readonly EventRecord[],
  actions: ReadonlyMap<number, ActionInForce>,
): Promise<ReadonlyMap<EventRecord, KeyUse>> {
  const uses = new Map<EventRecord, KeyUse>();
  const candidates = all.filter(({ idempotencyKey }) => idempotencyKey !== undefined);
  if (candidates.length === 0) return uses;
  const rows = await sql.rows<KeyUseRow>(
    `SELECT e.rowid, e.timestamped_ms AS timestampedMs, e.revision, c.position,
        e.action_id = c.action_id AND octet_length(e.payload) = c.length AS isAlike
      FROM list(?1: key text, position integer, action_id bigint, length bigint, application text) AS c
      CROSS JOIN event AS e
      WHERE e.idempotency_key = c.key AND (e.idempotency_application = c.application OR e.action_id = c.action_id)
      ORDER BY e.action_id = c.action_id`,
    candidates.map(({ idempotencyKey, actionId, payload }, position) => [
      idempotencyKey,
      position,
      actionId,
      payload.length,
      actions.get(actionId)?.application,
    ]),
  );
  // They are asked for at once, as an engine on the network takes longest to be asked.
  const same = await Promise.all(
    rows.map(async ({ rowid, position, isAlike }) => {
      if (isAlike !== 1) return false;
      const payload = await sql.joined("SELECT payload AS bytes FROM event WHERE rowid = ?", rowid);
      return Buffer.compare(payload, candidates[position]!.payload) === 0;
    }),
  );
  // Where an action has moved, its own event is the last, and counts before one of its new application.
  for (const [index, { position, isAlike: _alike, ...use }] of rows.entries()) {
    uses.set(candidates[position]!, { ...use, isSame: same[index]! });
  }
  return uses;
}
