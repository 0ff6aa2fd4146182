import { isPastLimit } from "./attempt-limit.ts";
import { errorOf, type ResultRow } from "./finish-call.ts";
import type { FinishChanges } from "./finish-writes.ts";
import { beginsToBlock, keepsPlace, type OrderedPlace } from "./publication-order.ts";

/** A delivery that is leased. */
export interface Leased {
  readonly id: number;
  readonly claim_id: number;
  readonly subscription_id: number;
  /** The number of the attempt under way. */
  readonly attempt: number;
  readonly failures: number;
  readonly last_error: string | null;
}

/** One whose subscription has left the handler that is gone. */
export interface Moved {
  readonly id: number;
  readonly max_retries: number;
}

const WAITING = 0;
export const FAILED = 3;

/** Where a delivery goes that was not delivered. */
export interface Move {
  readonly state: typeof WAITING | typeof FAILED;
  readonly failures: number;
  readonly dueMs: number | null;
  readonly lastError: string | null;
  /** In the order of its subscription, which waits for its retry. */
  readonly isKept: boolean;
  /** Its subscription blocks for it from now on. */
  readonly beginsToBlock: boolean;
}

interface At {
  readonly nowMs: number;
  readonly left: Moved | undefined;
  /** In the order of its subscription, if that has one. */
  readonly place: OrderedPlace | undefined;
}

type Outcome = "delivered" | "failed" | "returned";

/** `undefined` for one that was delivered, filtered or never begun. */
export function moveOf(leased: Leased, row: ResultRow, at: At): Move | undefined {
  const { kind } = row[8];
  if (kind === "delivered" || kind === "filtered" || kind === "unsent") return undefined;
  if (at.place !== undefined) return movedInOrder(leased, row, { ...at, place: at.place });
  return { ...moved(leased, row, at), isKept: false, beginsToBlock: false };
}

function moved(
  { failures, last_error }: Leased,
  [, , , , statusCode, errorCode, , , next]: ResultRow,
  { nowMs, left }: At,
): Omit<Move, "isKept" | "beginsToBlock"> {
  if (next.kind === "returned") return { state: WAITING, failures, dueMs: nowMs, lastError: last_error };
  const failed = { failures: failures + 1, lastError: errorOf(statusCode, errorCode) };
  if (next.kind === "retry") return { ...failed, state: WAITING, dueMs: Math.ceil(next.atMs) };
  const isTriedOn = left !== undefined && failures < left.max_retries;
  return isTriedOn ? { ...failed, state: WAITING, dueMs: nowMs } : { ...failed, state: FAILED, dueMs: null };
}

function movedInOrder(
  { failures, last_error }: Leased,
  [, , , , statusCode, errorCode, , , next]: ResultRow,
  { left, place }: At & { readonly place: OrderedPlace },
): Move {
  const waiting = { state: WAITING, dueMs: place.event_id } as const;
  if (next.kind === "returned") {
    return { ...waiting, failures, lastError: last_error, isKept: false, beginsToBlock: false };
  }
  const isKept = keepsPlace(place, failures, { next, hasLeft: left !== undefined });
  const failed = { failures: failures + 1, lastError: errorOf(statusCode, errorCode), isKept };
  return isKept
    ? { ...waiting, ...failed, beginsToBlock: beginsToBlock(place, failures) }
    : { ...failed, state: FAILED, dueMs: null, beginsToBlock: false };
}

/** @param at `base`: where the call's bytes begin; `move`: as `moveOf` has it */
export function note(
  changes: FinishChanges,
  leased: Leased,
  row: ResultRow,
  { nowMs, base, move }: { nowMs: number; base: number; move: Move | undefined },
): void {
  const [id, , startedAtMs, durationMs, statusCode, errorCode, responseOffset, responseBytes, next, more] =
    row;
  changes.ended.push(id);
  if (next.kind === "unsent" || next.kind === "filtered") return;
  const outcome: Outcome = next.kind === "delivered" || next.kind === "returned" ? next.kind : "failed";
  if (move !== undefined) {
    const { state, failures, dueMs, lastError } = move;
    const finishedMs = state === FAILED ? nowMs : null;
    changes.others.push([id, state, leased.attempt, failures, dueMs, finishedMs, lastError]);
    if (state === FAILED) changes.failed.push([id, nowMs]);
    if (move.beginsToBlock) changes.blocked.push([id, nowMs]);
  }
  const attempt = [
    id,
    leased.attempt,
    Math.round(startedAtMs),
    Math.max(0, Math.round(durationMs)),
    outcome,
    statusCode,
    errorCode ?? (outcome === "returned" ? "interrupted" : null),
    // substr counts from 1.
    responseOffset === null ? null : base + responseOffset + 1,
    responseBytes,
  ];
  if (isPastLimit(leased.attempt)) changes.long.push(id);
  if (more?.connection === undefined) {
    changes.attempts.push(attempt);
    return;
  }
  const { dnsMs, connectMs, firstByteMs } = more.connection;
  changes.connected.push([...attempt, rounded(dnsMs), rounded(connectMs), rounded(firstByteMs)]);
}

function rounded(durationMs: number | undefined): number | null {
  return durationMs === undefined ? null : Math.max(0, Math.round(durationMs));
}
