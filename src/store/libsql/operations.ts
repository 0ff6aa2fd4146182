import { findRevision, listRevisions } from "./action-revisions.ts";
import { createAction, findAction, listActions, reviseAction } from "./actions.ts";
import type { EventSelection } from "../events.ts";
import { countBacklog } from "./backlog.ts";
import type { BytesOut } from "./bytes-out.ts";
import { claimDue } from "./claim-due.ts";
import { findDelivery, retryDelivery, skipDelivery } from "./deliveries.ts";
import { countWaiting } from "./delivery-ids.ts";
import { listDeliveries } from "./delivery-list.ts";
import { findEvent, listEvents } from "./event-reads.ts";
import { findExpired } from "./expired-events.ts";
import { finishAttempts } from "./finish-attempts.ts";
import { holdLog, type LogPlace, moveLog, releaseLog } from "./log-pages.ts";
import { noteBackup } from "./number-gap.ts";
import type { Steps } from "./read-steps.ts";
import { recordEvents } from "./record-events.ts";
import { releaseLeases } from "./release-leases.ts";
import { removeEvents } from "./remove-events.ts";
import { countReplay, planReplay } from "./replay-plan.ts";
import { stepReplay } from "./replay-step.ts";
import { cancelReplay, findReplay, listReplays, runningReplays, startReplay } from "./replays.ts";
import type { Sql } from "./sql.ts";
import {
  createSubscription,
  deleteSubscription,
  findSubscription,
  listSubscriptions,
  rotateSecret,
  updateSubscription,
} from "./subscriptions.ts";
import { createToken, findToken, listTokens, revokeToken, touchTokens } from "./tokens.ts";
import type { RecordCall, FinishCall } from "./messages.ts";

/** What can be asked between two flights; the last argument takes the bytes that go with the answer. */
export const READS = {
  findAction,
  listActions,
  findRevision,
  listRevisions,
  findEvent,
  findSubscription,
  listSubscriptions,
  findDelivery,
  runningReplays,
  findReplay,
  listReplays,
  findToken,
  listTokens,
  holdLog: (sql: Sql) => holdLog(sql),
  moveLog: (sql: Sql, log: string, since: LogPlace | undefined) => moveLog(sql, log, since),
  releaseLog: (sql: Sql) => releaseLog(sql),
} as const;

/** The same, in steps, as they may take longer than a flight should wait. */
export const READS_IN_STEPS = {
  listEvents: (sql: Sql, query: EventSelection, out: BytesOut) => listEvents(sql, query, out),
  listDeliveries,
  countWaiting,
  countBacklog: (sql: Sql, nowMs: number) => countBacklog(sql, nowMs),
  findExpired,
  planReplay,
  countReplay,
} as const;

/** What is done one by one inside a flight, each in its own savepoint. */
export const WRITES = {
  createAction,
  reviseAction,
  createSubscription,
  updateSubscription,
  rotateSecret,
  deleteSubscription,
  retryDelivery,
  skipDelivery,
  startReplay,
  stepReplay,
  cancelReplay,
  claimDue,
  removeEvents: (sql: Sql, eventIds: readonly number[]) => removeEvents(sql, eventIds),
  releaseExpired: (sql: Sql, nowMs: number): number => releaseLeases(sql, "expired", nowMs),
  createToken,
  revokeToken,
  touchTokens,
  /** A real write of this many bytes, to find out whether the file takes them; the next one gives their room back. */
  probe: (sql: Sql, bytes: number): number =>
    sql.run(
      `INSERT INTO probe (one, tried, filler) VALUES (1, 1, zeroblob(?))
        ON CONFLICT DO UPDATE SET tried = tried + 1, filler = excluded.filler`,
      bytes,
    ),
  noteBackup,
} as const;

/** What is done for all calls of a flight together; the bytes are the flight's. */
export const MERGED_WRITES = {
  recordEvents: (sql: Sql, calls: readonly RecordCall[], bytes: Uint8Array) =>
    recordEvents(sql, calls, bytes),
  finishAttempts: (sql: Sql, calls: readonly FinishCall[], bytes: Uint8Array) =>
    finishAttempts(sql, calls, bytes),
} as const;

/**
 * Writes that a cut of the power may take back, as nobody hears of them: they give nothing an id. What was claimed is due
 * again then, as after any end of the process.
 */
export const DURABLE_LATER: ReadonlySet<string> = new Set<WriteName>(["claimDue", "releaseExpired"]);

type ArgsOf<F> = F extends (sql: Sql, ...args: infer A) => unknown ? WithoutOut<A> : never;
type WithoutOut<A extends unknown[]> = A extends [...infer Rest, BytesOut] ? Rest : A;
type ResultOf<F> = F extends (...args: never[]) => infer R ? R : never;

type Reads = typeof READS & typeof READS_IN_STEPS;
export type ReadName = keyof Reads;
export type ReadArgs<N extends ReadName> = ArgsOf<Reads[N]>;
export type ReadResult<N extends ReadName> =
  ResultOf<Reads[N]> extends Steps<infer R> ? R : ResultOf<Reads[N]>;

export type WriteName = keyof typeof WRITES;
export type WriteArgs<N extends WriteName> = ArgsOf<(typeof WRITES)[N]>;
export type WriteResult<N extends WriteName> = ResultOf<(typeof WRITES)[N]>;

export type MergedName = keyof typeof MERGED_WRITES;
export type MergedResult<N extends MergedName> = ResultOf<(typeof MERGED_WRITES)[N]>[number];
