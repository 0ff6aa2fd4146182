import type { Actor } from "../../domain/audit.ts";
import type { SecretRotation, SubscriptionPatch, SubscriptionRecord } from "../catalog.ts";
import type { EventSelection, NextEvents } from "../events.ts";
import type { BacklogOf, DeliverySelection } from "../queue.ts";
import { audited } from "./audited-writes.ts";
import { findAction, findRevision, listActions, listRevisions } from "./catalog/actions.ts";
import { findSecret, findToken, listTokens, recordTokenUses } from "./catalog/credentials.ts";
import { findDeletedSubscription, findSubscription, listSubscriptions } from "./catalog/subscriptions.ts";
import { eventBounds, findEvent, listEvents, nextEvents } from "./events/list.ts";
import { eventBatch, type RecordRows } from "./events/record-wire.ts";
import { examineFile, settleFile } from "./files/closed-file.ts";
import { addLog, moveLog } from "./files/copied-log.ts";
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
import { MAX_REMOVED_ROWS, removeExpired } from "./history/retention.ts";
import { listAttempts } from "./queue/attempts.ts";
import { listAttention } from "./queue/attention.ts";
import { countBacklog } from "./queue/backlog.ts";
import { countDeliveries, eventsWithDeliveries } from "./queue/delivery-counts.ts";
import { claimDue, claimForConsumers, findSendable } from "./queue/claim.ts";
import { findDelivery } from "./queue/deliveries.ts";
import { countPending, listDeliveries } from "./queue/delivery-list.ts";
import { moveWaits } from "./queue/move-waits.ts";
import { extendLeases, findLeased } from "./queue/pull-leases.ts";
import { releaseLeases } from "./queue/release.ts";
import { finishAttempts } from "./queue/finish.ts";
import { recordAndClaim } from "./queue/record-claim.ts";
import type { ClaimCall, ConsumerCall, FinishedRow } from "./queue/wire.ts";
import { pauseCheckpoints, resumeCheckpoints } from "./thread/connection.ts";
import {
  joined,
  longRead,
  type Operations,
  read,
  readWith,
  report,
  reporting,
  write,
  writeWith,
} from "./thread/operation.ts";
import type { Sql } from "./thread/sql.ts";

/** So many rows go in a transaction of their own. */
const ALONE_ROWS = 10_000;

/**
 * All that the store can do, by the parts of its port. The thread runs it, and the facade (`store.ts`) is made from it: a new
 * operation is a function with its statements, and a line here.
 */
export const OPERATIONS = {
  catalog: {
    createAction: write(audited.createAction),
    findAction: read(findAction),
    listActions: read(listActions),
    reviseAction: write(audited.reviseAction),
    findRevision: read(findRevision),
    listRevisions: read(listRevisions),
    createSubscription: writeWith(({ sql, key }, input: SubscriptionRecord, nowMs: number, by?: Actor) =>
      audited.createSubscription(sql, input, nowMs, key, by),
    ),
    findSecret: readWith(({ sql, key }, id: number) => findSecret(sql, id, key)),
    findSubscription: read(findSubscription),
    findDeletedSubscription: read(findDeletedSubscription),
    listSubscriptions: read(listSubscriptions),
    updateSubscription: writeWith((work, id: number, patch: SubscriptionPatch, nowMs: number, by?: Actor) =>
      report(work, audited.updateSubscription(work.sql, id, patch, nowMs, work.key, by)),
    ),
    rotateSecret: writeWith(({ sql, key }, id: number, rotation: SecretRotation, nowMs: number, by?: Actor) =>
      audited.rotateSecret(sql, id, rotation, nowMs, key, by),
    ),
    noteSecretUse: write(audited.noteSecretUse),
    deleteSubscription: reporting(audited.deleteSubscription),
  },
  events: {
    record: joined(({ sql, bytes }, calls: readonly RecordRows[]) =>
      recordAndClaim(sql, calls.map(eventBatch), bytes),
    ),
    list: readWith(({ sql, out }, query: EventSelection) => listEvents(sql, query, out), true),
    find: readWith(({ sql, out }, id: number) => findEvent(sql, id, out)),
    withDeliveries: read(eventsWithDeliveries),
    countDeliveries: longRead(countDeliveries),
    next: readWith(({ sql, out }, query: NextEvents) => nextEvents(sql, query, out), true),
    bounds: read(eventBounds),
    removeExpired: write(removeExpired, { rows: MAX_REMOVED_ROWS }),
  },
  queue: {
    claim: writeWith(({ sql, out }, call: ClaimCall) => claimDue(sql, call, out), { durable: "later" }),
    claimForConsumers: writeWith(({ sql, out }, call: ConsumerCall) => claimForConsumers(sql, call, out), {
      durable: "later",
    }),
    finish: joined((work, results: readonly FinishedRow[]) =>
      report(work, finishAttempts(work.sql, results, work.bytes)),
    ),
    extend: write(extendLeases, { durable: "later" }),
    findLeased: read(findLeased),
    releaseExpired: write((sql: Sql, nowMs: number) => releaseLeases(sql, "expired", nowMs), {
      durable: "later",
    }),
    moveWaits: write(moveWaits, { rows: ALONE_ROWS }),
    list: longRead((sql: Sql, query: DeliverySelection) => listDeliveries(sql, query)),
    find: read(findDelivery),
    retry: write(audited.retryDelivery),
    skip: reporting(audited.skipDelivery),
    findSendable: read(findSendable),
    attempts: longRead(listAttempts),
    attention: longRead(listAttention),
    countPending: longRead(countPending),
    backlog: longRead((sql: Sql, nowMs: number, of?: BacklogOf) => countBacklog(sql, nowMs, of)),
  },
  replays: {
    plan: longRead(planReplay),
    count: longRead(countReplay),
    start: write(audited.startReplay),
    advance: reporting(advanceReplay),
    running: read(runningReplays),
    find: read(findReplay),
    list: read(listReplays),
    cancel: reporting(audited.cancelReplay),
  },
  tokens: {
    create: write(audited.createToken),
    find: read(findToken),
    list: read(listTokens),
    revoke: write(audited.revokeToken),
    recordUses: write(recordTokenUses),
  },
  audit: {
    list: read(listAudit),
    removeExpired: write(removeAudit, { rows: MAX_REMOVED_ROWS }),
  },
  stats: {
    countRefused: write(countRefused, { durable: "later" }),
    fold: write(foldStats, { rows: MAX_REMOVED_ROWS, durable: "later" }),
    steps: longRead(readStatsSteps),
    totals: longRead(readStatsTotals),
    open: longRead(readOpenStats),
    actions: longRead(statsActions),
    subscriptions: longRead(statsSubscriptions),
    removeExpired: write(removeStats, { rows: MAX_REMOVED_ROWS, durable: "later" }),
  },
  file: {
    pauseCheckpoints: read(pauseCheckpoints),
    resumeCheckpoints: read(resumeCheckpoints),
    noteBackup: write(noteBackup),
    /** A real write of this many bytes, to find out whether the disk takes them. The next one frees them. */
    probe: write((sql: Sql, bytes: number) =>
      sql.run(
        `INSERT INTO write_check (one, filler) VALUES (1, zeroblob(?))
          ON CONFLICT DO UPDATE SET filler = excluded.filler`,
        bytes,
      ),
    ),
  },
} as const satisfies Operations;

/** What a thread of its own does with a file: one that nobody has open, or beside the two that have the data file open. */
export const FILE_TASKS = { examineFile, settleFile, moveNumbers, addLog, moveLog } as const;

export type FileTask = {
  readonly [N in keyof typeof FILE_TASKS]: {
    readonly run: N;
    readonly args: Readonly<Parameters<(typeof FILE_TASKS)[N]>>;
  };
}[keyof typeof FILE_TASKS];
