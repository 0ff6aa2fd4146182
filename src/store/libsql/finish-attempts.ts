import type { ServiceEventName } from "../../domain/service-events.ts";
import type { FinishAnswer } from "../finishes.ts";
import type { ResultRow } from "./finish-call.ts";
import { FAILED, type Leased, type Move, moveOf, type Moved, note } from "./finish-moves.ts";
import { type FinishChanges, writeChanges } from "./finish-writes.ts";
import { nothingTold, noteStanding, tell } from "./handler-standing.ts";
import { TellingLimit } from "./own-events.ts";
import { loadPlaces } from "./publication-order.ts";
import { type Telling, tellTurns } from "./service-events.ts";
import type { Sql } from "./sql.ts";
import type { FinishCall } from "./messages.ts";

/**
 * Records the attempts of many calls and moves their deliveries on, set-wise. A result counts while its claim is still
 * the delivery's, and once; what would tell of too much at once is left to another call. That a subscription was paused
 * or deleted meanwhile needs no care here: what is due again is then held or cancelled by that.
 */
export function finishAttempts(
  sql: Sql,
  calls: readonly FinishCall[],
  bytes: Uint8Array,
): readonly Telling<FinishAnswer>[] {
  const batches = calls.map(({ results, nowMs, base = 0, disableAfterMs }) => ({
    rows: JSON.parse(results) as ResultRow[],
    nowMs,
    base,
    disableAfterMs,
    told: nothingTold(),
  }));
  const all = batches.flatMap(({ rows }) => rows);
  const open = loadLeased(sql, all);
  const elsewhere = loadMoved(sql, all, open);
  const changes: FinishChanges = {
    ended: [],
    delivered: [],
    filtered: [],
    others: [],
    failed: [],
    blocked: [],
    attempts: [],
    connected: [],
    long: [],
  };
  const places = loadPlaces(sql, all);
  const limit = new TellingLimit(sql);
  const answers = batches.map(({ rows, nowMs, base, told }) => {
    const delivered: number[] = [];
    const filtered: number[] = [];
    const deferred: number[] = [];
    const failedBefore = changes.failed.length;
    changes.delivered.push({ ids: delivered, nowMs });
    changes.filtered.push({ ids: filtered, nowMs });
    const applied = rows.map((row, index) => {
      const leased = open.get(row[0]);
      if (leased?.claim_id !== row[1]) return false;
      const left = elsewhere.get(leased.id);
      const move = moveOf(leased, row, { nowMs, left, place: places.get(leased.id) });
      const hasLeft = left !== undefined;
      if (move !== undefined && !limit.admits(namesTold(row, move, hasLeft))) {
        deferred.push(index);
        return false;
      }
      open.delete(leased.id);
      const { kind } = row[8];
      if (kind === "delivered") delivered.push(leased.id);
      else if (kind === "filtered") filtered.push(leased.id);
      note(changes, leased, row, { nowMs, base, move });
      tell(told, leased.subscription_id, row, { hasLeft, isKept: move?.isKept === true });
      return true;
    });
    const failed = changes.failed.length - failedBefore;
    return { applied, deferred, ended: { delivered: delivered.length, failed, filtered: filtered.length } };
  });
  writeChanges(sql, changes, bytes);
  const standingLimit = new TellingLimit(sql);
  const standing = batches.map(({ told, nowMs, disableAfterMs }) => ({
    nowMs,
    deactivated: noteStanding(sql, told, { nowMs, disableAfterMs, limit: standingLimit }),
  }));
  const { failed, blocked } = changes;
  const told = tellTurns(sql, { failed, blocked, standing });
  return standing.map(({ deactivated }, index) => ({
    answer: { ...answers[index]!, deactivated },
    told: index === 0 ? told : undefined,
  }));
}

/** The service events that applying it would make, as far as that is known before. */
function namesTold({ 8: next }: ResultRow, move: Move, hasLeft: boolean): readonly ServiceEventName[] {
  const names: ServiceEventName[] = [];
  if (move.state === FAILED) names.push("evreg.delivery.failed");
  if (move.beginsToBlock) names.push("evreg.subscription.blocked");
  if (next.kind === "gone" && !hasLeft) names.push("evreg.subscription.deactivated");
  return names;
}

/**
 * Deliveries whose handler is gone, and whose subscription has another one by now, of which that tells nothing.
 */
function loadMoved(
  sql: Sql,
  rows: readonly ResultRow[],
  open: ReadonlyMap<number, Leased>,
): ReadonlyMap<number, Moved> {
  const gone = rows.flatMap(([id, claimId, , , , , , , next]) => {
    const leased = open.get(id);
    if (next.kind !== "gone" || leased?.claim_id !== claimId) return [];
    return [[id, leased.subscription_id, next.handler]];
  });
  if (gone.length === 0) return new Map();
  const found = sql.rows<Moved>(
    `SELECT g.value ->> 0 AS id, s.max_retries
      FROM json_each(?) AS g CROSS JOIN subscription AS s ON s.rowid = g.value ->> 1
      WHERE s.handler <> g.value ->> 2`,
    JSON.stringify(gone),
  );
  return new Map(found.map((row) => [row.id, row]));
}

function loadLeased(sql: Sql, rows: readonly ResultRow[]): Map<number, Leased> {
  const ids = new Set(rows.map(([id]) => id));
  const found = sql.rows<Leased>(
    `SELECT d.rowid AS id, l.claim_id, d.subscription_id, d.attempt + 1 AS attempt, d.failures, d.last_error
      FROM json_each(?) AS r
      CROSS JOIN lease AS l ON l.delivery_id = r.value
      CROSS JOIN delivery AS d ON d.rowid = l.delivery_id`,
    JSON.stringify([...ids]),
  );
  return new Map(found.map((row) => [row.id, row]));
}
