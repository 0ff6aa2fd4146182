import type { EventSelection, ExpiredRange } from "../events.ts";
import type { BacklogOf } from "../queue.ts";
import { AUDITED_WRITES } from "./audited-writes.ts";
import { findAction, findRevision, listActions, listRevisions } from "./catalog/actions.ts";
import { findSecret, findToken, listTokens, recordTokenUses } from "./catalog/credentials.ts";
import { findDeletedSubscription, findSubscription, listSubscriptions } from "./catalog/subscriptions.ts";
import { findEvent, listEvents } from "./events/list.ts";
import { eventBounds, nextEvents } from "./events/next.ts";
import { packOutcomes, unpackEvents } from "./events/record-wire.ts";
import { examineFile, settleFile } from "./files/closed-file.ts";
import { moveNumbers, noteBackup } from "./files/id-reservation.ts";
import { countReplay, planReplay, advanceReplay } from "./history/replay-step.ts";
import { listAudit, removeAudit } from "./history/audit.ts";
import {
  foldStats,
  readOpenStats,
  readStatsSteps,
  readStatsTotals,
  removeStats,
  statsActions,
  statsSubscriptions,
} from "./history/stats.ts";
import { countRefused } from "./history/stats-counts.ts";
import { findReplay, listReplays, runningReplays } from "./history/replays.ts";
import { findExpired, removeEvents } from "./history/retention.ts";
import { listAttention } from "./queue/attention.ts";
import { countBacklog } from "./queue/backlog.ts";
import { countDeliveries, eventsWithDeliveries } from "./queue/delivery-counts.ts";
import { claimDue, findSendable } from "./queue/claim.ts";
import { findDelivery } from "./queue/deliveries.ts";
import { countPending, listDeliveries } from "./queue/delivery-list.ts";
import { listAttempts } from "./queue/last-attempts.ts";
import { moveWaits } from "./queue/move-waits.ts";
import { extendLeases, findLeased } from "./queue/pull-leases.ts";
import { releaseLeases } from "./queue/release.ts";
import { finishAttempts } from "./queue/finish.ts";
import { recordAndClaim } from "./queue/record-claim.ts";
import { packFinished, unpackResults } from "./queue/wire.ts";
import { holdLog, moveLog, releaseLog } from "./thread/checkpoints.ts";
import type { ByteWriter } from "./thread/protocol.ts";
import type { Steps } from "../../runtime/yielding.ts";
import type { Sql } from "./thread/sql.ts";

/** Reads, each in a transaction of its own. The last argument takes the bytes that go with the answer. */
export const READS = {
  findAction,
  listActions,
  findRevision,
  listRevisions,
  findEvent,
  eventsWithDeliveries,
  findSecret,
  findSubscription,
  findDeletedSubscription,
  listSubscriptions,
  findDelivery,
  findSendable,
  findLeased,
  runningReplays,
  findReplay,
  listReplays,
  listAudit,
  findToken,
  listTokens,
  listAttempts,
} as const;

/** What the thread that writes does with its log between two transactions. */
export const LOG_READS = { holdLog, moveLog, releaseLog } as const;
export type LogReadName = keyof typeof LOG_READS;

/** The same in steps, as they may take longer than a transaction should wait. */
export const SLICED_READS = {
  listEvents: (sql: Sql, query: EventSelection, out: ByteWriter) => listEvents(sql, query, out),
  nextEvents,
  eventBounds,
  listDeliveries,
  listAttention,
  countPending,
  countDeliveries,
  countBacklog: (sql: Sql, nowMs: number, of?: BacklogOf) => countBacklog(sql, nowMs, { of }),
  findExpired: (sql: Sql, range: ExpiredRange, after?: number) => findExpired(sql, range, after),
  planReplay,
  countReplay,
  readStatsSteps,
  readStatsTotals,
  readOpenStats,
  statsActions,
  statsSubscriptions,
} as const;

/** Writes that are done one by one in a transaction. */
export const WRITES = {
  ...AUDITED_WRITES,
  removeAudit,
  advanceReplay,
  claimDue,
  extendLeases,
  removeEvents: (sql: Sql, eventIds: readonly number[]) => removeEvents(sql, eventIds),
  releaseExpired: (sql: Sql, nowMs: number): number => releaseLeases(sql, "expired", nowMs),
  moveWaits,
  recordTokenUses,
  /** A real write of this many bytes, to find out whether the disk takes them. The next one frees them. */
  probe: (sql: Sql, bytes: number): number =>
    sql.run(
      `INSERT INTO write_check (one, filler) VALUES (1, zeroblob(?))
        ON CONFLICT DO UPDATE SET filler = excluded.filler`,
      bytes,
    ),
  noteBackup,
  countRefused,
  foldStats,
  removeStats,
} as const;

/** Writes of which all in a transaction are done together. `unpack` and `pack` say how they cross the thread. */
export const BATCHED_WRITES = {
  recordEvents: { unpack: unpackEvents, run: recordAndClaim, pack: packOutcomes },
  finishAttempts: { unpack: unpackResults, run: finishAttempts, pack: packFinished },
} as const;

/**
 * Writes that a power cut may undo: they give nothing an id, what was claimed is due again after any end, and counts that were
 * folded are open again.
 */
export const WITHOUT_FSYNC: ReadonlySet<string> = new Set<WriteName>([
  "claimDue",
  "extendLeases",
  "releaseExpired",
  "countRefused",
  "foldStats",
  "removeStats",
]);

type ArgsOf<F> = F extends (sql: Sql, ...args: infer A) => unknown ? WithoutOut<A> : never;
type WithoutOut<A extends unknown[]> = A extends [...infer Rest, ByteWriter] ? Rest : A;
type ResultOf<F> = F extends (...args: never[]) => infer R ? R : never;

type Reads = typeof READS & typeof SLICED_READS;
export type ReadName = keyof Reads;
export type ReadArgs<N extends ReadName> = ArgsOf<Reads[N]>;
export type ReadResult<N extends ReadName> =
  ResultOf<Reads[N]> extends Steps<infer R> ? R : ResultOf<Reads[N]>;

export type WriteName = keyof typeof WRITES;
export type WriteArgs<N extends WriteName> = ArgsOf<(typeof WRITES)[N]>;
export type WriteResult<N extends WriteName> = ResultOf<(typeof WRITES)[N]>;

/** What a thread of its own does with a file that nobody has open. */
export const FILE_TASKS = { examineFile, settleFile, moveNumbers } as const;

export type FileTask = {
  readonly [N in keyof typeof FILE_TASKS]: {
    readonly run: N;
    readonly args: Readonly<Parameters<(typeof FILE_TASKS)[N]>>;
  };
}[keyof typeof FILE_TASKS];

export type BatchedName = keyof typeof BATCHED_WRITES;
