import type { RecordOutcome } from "../events.ts";
import { CLOCK_SLACK_MS, type ClockStep, insertSteps } from "./clock-steps.ts";
import { eventChecksum } from "./event-checksum.ts";
import { sealPassed } from "./event-counts.ts";
import { type Candidate, candidatesOf } from "./record-call.ts";
import { type ActionState, type KeyUse, loadActionStates, loadEnds, loadKeyUses } from "./record-lookups.ts";
import type { Sql } from "./sql.ts";
import type { RecordCall } from "./messages.ts";

interface Accepted extends Candidate {
  readonly rowid: number;
  readonly timestampedMs: number;
}

/**
 * Rows one call may write unless it is atomic. A delivery takes about 2.5 µs, so an event to 1,000 subscriptions some
 * 3 ms, and a batch of 1,000 such events would hold up all other work for seconds.
 */
export const CALL_ROWS = 4_000;

/**
 * Records the events of many calls with a fixed number of statements: what there is, is read first, then decided on
 * here, then written set-wise. Nothing is written before everything is decided.
 * @param bytes of the flight, in which the payloads lie
 */
export function recordEvents(
  sql: Sql,
  calls: readonly RecordCall[],
  bytes: Uint8Array,
): readonly (readonly RecordOutcome[])[] {
  const batches = candidatesOf(calls);
  const all = batches.flat();
  const actions = loadActionStates(sql, all);
  const stored = loadKeyUses(sql, batches, bytes);
  const ends = loadEnds(sql);

  const accepted: Accepted[] = [];
  const steps: ClockStep[] = [];
  const keysHere = new Map<string, Accepted>();
  let next = { event: ends.event + 1, delivery: ends.delivery + 1 };
  let { lastMs } = ends;

  const decide = (candidate: Candidate): RecordOutcome => {
    const { key, nowMs } = candidate;
    const used = key === null ? undefined : (stored.get(key) ?? keysHere.get(key));
    if (used !== undefined) {
      const { rowid, timestampedMs, revision } = used;
      return isSame(used, candidate, bytes)
        ? { kind: "replayed", rowid, timestampedMs, revision }
        : { kind: "key_conflict", rowid };
    }
    const action = actions.get(candidate.actionId);
    if (action?.revision !== candidate.revision) return { kind: "stale" };
    if (nowMs < lastMs - CLOCK_SLACK_MS) {
      steps.push({ ...next, noticedMs: nowMs });
      lastMs = nowMs;
    }
    lastMs = Math.max(nowMs, lastMs);
    const event: Accepted = { ...candidate, rowid: next.event, timestampedMs: lastMs };
    next = { event: next.event + 1, delivery: next.delivery + action.subscribers };
    accepted.push(event);
    if (key !== null) keysHere.set(key, event);
    return { kind: "recorded", rowid: event.rowid, timestampedMs: lastMs, deliveries: action.subscribers };
  };

  const outcomes = batches.map((batch, index) => {
    const before = { accepted: accepted.length, steps: steps.length, next, lastMs };
    if (calls[index]?.atomic !== true) return decideSome(batch, decide);
    const decided = batch.map(decide);
    if (decided.every(isKept)) return decided;
    for (const { key } of accepted.slice(before.accepted)) if (key !== null) keysHere.delete(key);
    accepted.length = before.accepted;
    steps.length = before.steps;
    ({ next, lastMs } = before);
    return decided.map((outcome): RecordOutcome => (isKept(outcome) ? { kind: "withheld" } : outcome));
  });

  insertSteps(sql, steps);
  insertEvents(sql, accepted, bytes);
  insertDeliveries(sql, accepted, actions);
  sealPassed(sql, ends.event, next.event - 1);
  return outcomes;
}

/** Decides on as many as are to go into one transaction, and at least on one. */
function decideSome(
  batch: readonly Candidate[],
  decide: (candidate: Candidate) => RecordOutcome,
): readonly RecordOutcome[] {
  let rows = 0;
  return batch.map((candidate) => {
    if (rows >= CALL_ROWS) return { kind: "deferred" };
    const outcome = decide(candidate);
    rows += outcome.kind === "recorded" ? 1 + outcome.deliveries : 0;
    return outcome;
  });
}

function insertEvents(sql: Sql, accepted: readonly Accepted[], bytes: Uint8Array): void {
  if (accepted.length === 0) return;
  // Most have no key, and each member that is taken out of the JSON costs a tenth of a microsecond.
  const isKeyed = accepted.some(({ key }) => key !== null);
  sql.run(
    `INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload, checksum, idempotency_key)
      SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, substr(?2, value ->> 4, value ->> 5), value ->> 6,
        ${isKeyed ? "value ->> 7" : "NULL"}
      FROM json_each(?1)`,
    JSON.stringify(
      accepted.map((event) => {
        const { rowid, actionId, revision, timestampedMs, offset, length, key } = event;
        const checksum = eventChecksum(rowid, actionId, payload(event, bytes));
        // substr counts from 1.
        const row = [rowid, actionId, revision, timestampedMs, offset + 1, length, checksum];
        return isKeyed ? [...row, key] : row;
      }),
    ),
    bytes,
  );
}

/**
 * In the order of their events, so that the rowids of deliveries rise with theirs. For an ordered subscription the event's
 * rowid is in place of the time, see publication-order.ts.
 */
function insertDeliveries(
  sql: Sql,
  accepted: readonly Accepted[],
  actions: ReadonlyMap<number, ActionState>,
): void {
  const awaited = accepted.filter(({ actionId }) => (actions.get(actionId)?.subscribers ?? 0) > 0);
  if (awaited.length === 0) return;
  sql.run(
    `INSERT INTO delivery (event_id, subscription_id, created_ms, due_ms)
      SELECT new.value ->> 0, s.rowid, new.value ->> 2, new.value ->> CASE s.ordered WHEN 1 THEN 0 ELSE 3 END
      FROM json_each(?) AS new CROSS JOIN subscription AS s
      WHERE s.action_id = new.value ->> 1 AND s.active = 1 AND s.deleted_ms IS NULL`,
    JSON.stringify(
      awaited.map(({ rowid, actionId, timestampedMs, nowMs }) => [rowid, actionId, timestampedMs, nowMs]),
    ),
  );
}

function isSame(used: KeyUse | Accepted, candidate: Candidate, bytes: Uint8Array): boolean {
  if ("sameAs" in used) return used.sameAs.has(candidate.place);
  const same = Buffer.compare(payload(used, bytes), payload(candidate, bytes)) === 0;
  return used.actionId === candidate.actionId && same;
}

function payload({ offset, length }: Candidate, bytes: Uint8Array): Uint8Array {
  return bytes.subarray(offset, offset + length);
}

function isKept(outcome: RecordOutcome): boolean {
  return outcome.kind === "recorded" || outcome.kind === "replayed";
}
