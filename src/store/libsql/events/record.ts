import {
  ANY_KEYED,
  type KeyedReceivers,
  keyedReceivers,
  keysOfEvent,
  placeRecorded,
} from "../queue/key-order.ts";
import { type Sql, timeOf } from "../thread/sql.ts";
import { receiversOf } from "../catalog/hearing.ts";
import { closePassedBlocks } from "./counts.ts";
import { type KeyHit, keyIn, loadKeyHits } from "./idempotency-keys.ts";
import { namesOf, type PayloadNames } from "./payload-names.ts";
import { eventChecksum } from "./payloads.ts";
import type { EventBatch, Incoming, StoredOutcome } from "./record-wire.ts";
import { CLOCK_TOLERANCE_MS, type ClockStep, insertClockSteps } from "./timeline.ts";

/** `offset` and `length` become those of its stored form. */
interface Accepted extends Incoming {
  offset: number;
  length: number;
  readonly rowid: number;
  readonly timestampedMs: number;
  /** Of its payload; 0 until its stored form is made. */
  checksum: number;
}

/**
 * Once a transaction writes so many rows, calls that are not atomic get one more event in, and the rest is for their callers to
 * send again. A delivery takes about 2.5 µs, so 1,000 events to 1,000 subscriptions each would stop all other work for seconds.
 */
const MANY_ROWS = 4_000;

/**
 * Records the events of many calls with a fixed number of statements: it reads what exists, decides on all events, then writes
 * set-wise.
 * @param bytes of the transaction, in which the payloads lie
 * @returns by call, the outcomes of the events that were taken: all, or the first of a call that is not atomic
 */
export function recordEvents(
  sql: Sql,
  batches: readonly EventBatch[],
  bytes: Uint8Array,
): readonly (readonly StoredOutcome[])[] {
  const actions = loadActionStates(
    sql,
    batches.flatMap(({ events }) => events),
  );
  const stored = loadKeyHits(sql, batches, actions, bytes);
  const ends = loadLastIds(sql);

  const accepted: Accepted[] = [];
  const steps: ClockStep[] = [];
  const keysHere = new Map<string, Accepted>();
  let next = { event: ends.event + 1, delivery: ends.delivery + 1 };
  let { lastMs } = ends;

  const decide = (candidate: Incoming): StoredOutcome => {
    const { key, nowMs } = candidate;
    const action = actions.get(candidate.actionId);
    const scopedKey = key === null ? undefined : keyIn(action?.application, key);
    const used = scopedKey === undefined ? undefined : (stored.get(candidate) ?? keysHere.get(scopedKey));
    if (used !== undefined) {
      const { rowid, timestampedMs, revision } = used;
      return isSame(used, candidate, bytes)
        ? { kind: "replayed", rowid, timestampedMs, revision }
        : { kind: "key_conflict", rowid };
    }
    if (action?.revision !== candidate.revision) return { kind: "stale" };
    if (nowMs < lastMs - CLOCK_TOLERANCE_MS) {
      steps.push({ ...next, noticedMs: nowMs });
      lastMs = nowMs;
    }
    lastMs = Math.max(nowMs, lastMs);
    const event: Accepted = { ...candidate, rowid: next.event, timestampedMs: lastMs, checksum: 0 };
    next = { event: next.event + 1, delivery: next.delivery + action.subscribers };
    accepted.push(event);
    if (scopedKey !== undefined) keysHere.set(scopedKey, event);
    return { kind: "recorded", rowid: event.rowid, timestampedMs: lastMs, deliveries: action.subscribers };
  };

  let rows = 0;
  const decideWhileFew = (events: readonly Incoming[]): readonly StoredOutcome[] => {
    const decided: StoredOutcome[] = [];
    for (const candidate of events) {
      if (rows >= MANY_ROWS && decided.length > 0) break;
      const outcome = decide(candidate);
      rows += outcome.kind === "recorded" ? 1 + outcome.deliveries : 0;
      decided.push(outcome);
    }
    return decided;
  };

  const outcomes = batches.map(({ atomic, events }) => {
    if (!atomic) return decideWhileFew(events);
    const before = { accepted: accepted.length, steps: steps.length, next, lastMs };
    const decided = events.map(decide);
    if (decided.every(isStored)) return decided;
    for (const { key, actionId } of accepted.slice(before.accepted)) {
      if (key !== null) keysHere.delete(keyIn(actions.get(actionId)?.application, key));
    }
    accepted.length = before.accepted;
    steps.length = before.steps;
    ({ next, lastMs } = before);
    return decided.map((outcome): StoredOutcome => (isStored(outcome) ? { kind: "withheld" } : outcome));
  });

  insertClockSteps(sql, steps);
  const keys = accepted.flatMap((event) => {
    const keyed = actions.get(event.actionId)!.keyed;
    return keyed.length === 0 ? [] : keysOfEvent(event.rowid, payload(event, bytes), keyed);
  });
  const storedBytes = storedForms(accepted, bytes, actions);
  const isAwaited = ({ actionId }: Accepted): boolean => (actions.get(actionId)?.subscribers ?? 0) > 0;
  const runs = runsOf(accepted);
  if (runs.length * MIN_RUN <= accepted.length) {
    for (const run of runs) insertRun(sql, run, storedBytes, actions);
    for (const run of runs.filter(([first]) => isAwaited(first!))) insertRunDeliveries(sql, run);
  } else {
    insertEvents(sql, accepted, storedBytes, actions);
    const awaited = accepted.filter(isAwaited);
    if (awaited.length > 0) insertDeliveries(sql, awaited);
  }
  placeRecorded(sql, keys, accepted.at(-1)?.nowMs ?? 0);
  closePassedBlocks(sql, ends.event, next.event - 1);
  return outcomes;
}

/**
 * Computes the checksums of the payloads and shortens these.
 * @returns the bytes in which they lie from now on
 */
function storedForms(
  accepted: readonly Accepted[],
  bytes: Uint8Array,
  actions: ReadonlyMap<number, ActionState>,
): Uint8Array {
  const isAny = accepted.some(({ actionId }) => actions.get(actionId)?.names.isEmpty === false);
  const stored = isAny ? new Uint8Array(accepted.reduce((sum, { length }) => sum + length, 0)) : bytes;
  let end = 0;
  for (const event of accepted) {
    const published = payload(event, bytes);
    event.checksum = eventChecksum(event.rowid, event.actionId, published);
    if (!isAny) continue;
    event.offset = end;
    end = actions.get(event.actionId)!.names.shorten(published, stored, end);
    event.length = end - event.offset;
  }
  return stored;
}

/** From so many on, a statement of their own costs less than to give each of them all of its values. */
const MIN_RUN = 8;

/** Events with rowids one behind the other that differ in nothing but their payloads and keys: nearly all of a commit. */
function runsOf(accepted: readonly Accepted[]): readonly (readonly Accepted[])[] {
  const runs: Accepted[][] = [];
  let first: Accepted | undefined;
  for (const event of accepted) {
    const isAlike =
      first?.actionId === event.actionId &&
      first.revision === event.revision &&
      first.timestampedMs === event.timestampedMs &&
      first.nowMs === event.nowMs;
    if (isAlike) {
      runs.at(-1)!.push(event);
    } else {
      runs.push([event]);
      first = event;
    }
  }
  return runs;
}

function insertEvents(
  sql: Sql,
  accepted: readonly Accepted[],
  bytes: Uint8Array,
  actions: ReadonlyMap<number, ActionState>,
): void {
  // Each value that is taken out of the JSON costs a tenth of a microsecond or two, and most have no key.
  const isKeyed = accepted.some(({ key }) => key !== null);
  sql.run(
    `INSERT INTO event
        (rowid, action_id, revision, timestamped_ms, payload, checksum, idempotency_key, idempotency_application)
      SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, substr(?2, value ->> 4, value ->> 5), value ->> 6,
        ${isKeyed ? "value ->> 7, value ->> 8" : "NULL, NULL"}
      FROM json_each(?1)`,
    JSON.stringify(
      accepted.map((event) => {
        const { rowid, actionId, revision, timestampedMs, key } = event;
        const row = [rowid, actionId, revision, timestampedMs, ...payloadCells(event, 0)];
        return key === null ? row : [...row, key, actions.get(actionId)!.application];
      }),
    ),
    bytes,
  );
}

function insertRun(
  sql: Sql,
  run: readonly Accepted[],
  all: Uint8Array,
  actions: ReadonlyMap<number, ActionState>,
): void {
  const { rowid, actionId, revision, timestampedMs } = run[0]!;
  // The engine copies what it is given, so each run gives its own part.
  const start = Math.min(...run.map(({ offset }) => offset));
  const bytes = all.subarray(start, Math.max(...run.map(({ offset, length }) => offset + length)));
  const isKeyed = run.some(({ key }) => key !== null);
  sql.run(
    `INSERT INTO event
        (rowid, action_id, revision, timestamped_ms, payload, checksum, idempotency_key, idempotency_application)
      SELECT ?3 + key, ?4, ?5, ?6, substr(?2, value ->> 0, value ->> 1), value ->> 2,
        ${isKeyed ? "value ->> 3, iif(value ->> 3 IS NULL, NULL, ?7)" : "NULL, NULL"}
      FROM json_each(?1)`,
    JSON.stringify(
      run.map((event) => {
        const cells = payloadCells(event, start);
        return isKeyed ? [...cells, event.key] : cells;
      }),
    ),
    bytes,
    rowid,
    actionId,
    revision,
    timestampedMs,
    ...(isKeyed ? [actions.get(actionId)!.application] : []),
  );
}

/** Where it lies from `start` on, as `substr` counts, and its checksum. */
function payloadCells({ offset, length, checksum }: Accepted, start: number): readonly number[] {
  return [offset - start + 1, length, checksum];
}

/** In the order of their events, so that the rowids of deliveries rise with theirs. */
function insertDeliveries(sql: Sql, awaited: readonly Accepted[]): void {
  sql.run(
    `INSERT INTO delivery (event_id, subscription_id, created_ms, due_ms, sequence)
      SELECT new.value ->> 0, s.rowid, new.value ->> 2, new.value ->> 3, iif(s.ordered = 1, new.value ->> 0, NULL)
      FROM json_each(?) AS new CROSS JOIN ${receiversOf("new.value ->> 1")}`,
    JSON.stringify(
      awaited.map(({ rowid, actionId, timestampedMs, nowMs }) => [rowid, actionId, timestampedMs, nowMs]),
    ),
  );
}

/** The same for a run, whose events are stored. */
function insertRunDeliveries(sql: Sql, run: readonly Accepted[]): void {
  const { rowid, actionId, timestampedMs, nowMs } = run[0]!;
  sql.run(
    `INSERT INTO delivery (event_id, subscription_id, created_ms, due_ms, sequence)
      SELECT e.rowid, s.rowid, ?4, ?5, iif(s.ordered = 1, e.rowid, NULL)
      FROM event AS e CROSS JOIN ${receiversOf("?3")} AND e.rowid BETWEEN ?1 AND ?2
      ORDER BY e.rowid`,
    rowid,
    rowid + run.length - 1,
    actionId,
    timestampedMs,
    nowMs,
  );
}

function isSame(used: KeyHit | Accepted, candidate: Incoming, bytes: Uint8Array): boolean {
  if ("isSame" in used) return used.isSame;
  const same = Buffer.compare(payload(used, bytes), payload(candidate, bytes)) === 0;
  return used.actionId === candidate.actionId && same;
}

function payload({ offset, length }: Incoming, bytes: Uint8Array): Uint8Array {
  return bytes.subarray(offset, offset + length);
}

function isStored(outcome: StoredOutcome): boolean {
  return outcome.kind === "recorded" || outcome.kind === "replayed";
}

interface ActionState {
  readonly application: string;
  /** The revision in force; `null` once the action is retired. */
  readonly revision: number | null;
  /** Active subscriptions now. */
  readonly subscribers: number;
  readonly keyed: KeyedReceivers;
  /** Of the last revision. */
  readonly names: PayloadNames;
}

interface StateRow extends Omit<ActionState, "names" | "keyed"> {
  readonly names: string | null;
  readonly any_keyed: number;
}

interface LastIds {
  /** The largest rowids ever given. */
  readonly event: number;
  readonly delivery: number;
  /** The time of the last event or delivery since the clock was set back, whichever is later; 0 when there is none. */
  readonly lastMs: number;
}

export function loadLastIds(sql: Sql): LastIds {
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

/** The state of each existing action that is named. Read one by one, as nearly all name the same. */
function loadActionStates(sql: Sql, candidates: readonly Incoming[]): ReadonlyMap<number, ActionState> {
  const states = new Map<number, ActionState>();
  const seen = new Set<number>();
  for (const { actionId } of candidates) {
    if (seen.has(actionId)) continue;
    seen.add(actionId);
    const state = sql.first<StateRow>(
      `SELECT iif(a.retired_ms IS NULL, a.revision, NULL) AS revision, a.application, (SELECT count(*) FROM ${receiversOf("a.rowid")}) AS subscribers,
          ${ANY_KEYED} AS any_keyed,
          (SELECT n.names FROM payload_names AS n WHERE n.action_id = a.rowid AND n.revision = a.revision) AS names
        FROM action AS a WHERE a.rowid = ?`,
      actionId,
    );
    if (state === undefined) continue;
    const { revision, application, subscribers } = state;
    const keyed = subscribers > 0 && state.any_keyed === 1 ? keyedReceivers(sql, actionId) : [];
    states.set(actionId, { revision, application, subscribers, keyed, names: namesOf(state.names) });
  }
  return states;
}
