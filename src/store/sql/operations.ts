import { type Actor, type AuditedChange, type ChangedMember, changedMembers } from "../../domain/audit.ts";
import { ACTION } from "../../model/action.ts";
import { SUBSCRIPTION } from "../../model/subscription.ts";
import type { Action } from "../../domain/action.ts";
import type { Delivery } from "../../domain/delivery.ts";
import type { Replay } from "../../domain/replay.ts";
import type { Subscription } from "../../domain/subscription.ts";
import type { Token } from "../../domain/token.ts";
import type { SubscriptionPatch } from "../catalog.ts";
import type { ClaimRequest, ConsumerRequest } from "../queue.ts";
import type { RevokeOptions } from "../store.ts";
import {
  createAction,
  findAction,
  listActions,
  listRevisions,
  nearestAction,
  reviseAction,
} from "./catalog/actions.ts";
import { createToken, findToken, listTokens, recordTokenUses, revokeToken } from "./catalog/credentials.ts";
import {
  createSubscription,
  deleteSubscription,
  findSubscription,
  listSubscriptions,
  rotateSecret,
  updateSubscription,
} from "./catalog/subscriptions.ts";
import { eventBounds, findEvent, listEvents, nextEvents } from "./events/list.ts";
import { listAudit, recordChange, removeAudit } from "./history/audit.ts";
import { countRefused, noteRunning, readFigures, removeStats, statsSubjects } from "./history/stats.ts";
import {
  advanceReplay,
  cancelReplay,
  countReplay,
  findReplay,
  listReplays,
  planReplay,
  runningReplays,
  startReplay,
} from "./history/replays.ts";
import { MAX_REMOVED_ROWS, removeExpired } from "./history/retention.ts";
import { listAttempts } from "./queue/attempts.ts";
import { listAttention } from "./queue/attention.ts";
import { countBacklog, countPending } from "./queue/backlog.ts";
import { countDeliveries, findDelivery, retryDelivery, skipDelivery } from "./queue/deliveries.ts";
import { claimDue, claimForConsumers, findSendable, recordAndClaim } from "./queue/claim.ts";
import { listDeliveries } from "./queue/delivery-list.ts";
import { extendLeases, findLeased, releaseLeases } from "./queue/leases.ts";
import { moveWaits } from "./queue/move-waits.ts";
import { finishAttempts } from "./queue/finish.ts";
import {
  each,
  joined,
  kept,
  longRead,
  type Operations,
  read,
  type Work,
  write,
  type WriteOperation,
} from "./operation.ts";
import type { Sql } from "./sql.ts";

/**
 * All that the store can do, by the parts of its port. The thread runs it, and the facade (`store.ts`) is made from it: a new
 * operation is a function with its statements, and a line here.
 */
export const OPERATIONS = {
  catalog: {
    createAction: audited("action.created", createAction),
    findAction: read(findAction),
    listActions: read(listActions),
    nearestAction: read(nearestAction),
    reviseAction: kept(
      audited("action.updated", reviseAction, {
        before: (sql, [{ action }]) => findAction(sql, action),
        members: (after, before) => before && changedMembers(ACTION, before, after),
      }),
    ),
    listRevisions: read(listRevisions),
    createSubscription: audited("subscription.created", createSubscription),
    findSubscription: read(findSubscription),
    listSubscriptions: read(listSubscriptions),
    updateSubscription: kept(
      audited("subscription.updated", updateSubscription, {
        before: (sql, [id]) => findSubscription(sql, id),
        members: (after, before, [, patch]) => before && updatedMembers(after, before, patch),
      }),
    ),
    rotateSecret: kept(audited("subscription.secret_rotated", rotateSecret)),
    noteSecretUse: write(async (sql, id: number, consumer: string, nowMs: number, by?: Actor) => {
      const used = await findSubscription(sql, id);
      if (used === undefined) return;
      const members = newValue("consumer", consumer);
      await recordChange(sql, { change: "subscription.secret_used", ...subjectOf(used), members }, nowMs, by);
    }),
    deleteSubscription: kept(audited("subscription.deleted", deleteSubscription)),
  },
  events: {
    record: joined(recordAndClaim),
    list: longRead(listEvents),
    find: read(findEvent),
    countDeliveries: longRead(countDeliveries),
    next: longRead(nextEvents),
    bounds: read(eventBounds),
    removeExpired: write(removeExpired, { rows: MAX_REMOVED_ROWS }),
  },
  queue: {
    claim: joined((work, calls: readonly ClaimRequest[]) => each(calls, (call) => claimDue(work, call)), {
      durable: "later",
    }),
    claimForConsumers: joined(
      (work, calls: readonly ConsumerRequest[]) => each(calls, (call) => claimForConsumers(work, call)),
      { durable: "later" },
    ),
    finish: joined(finishAttempts),
    extend: write(extendLeases, { durable: "later" }),
    findLeased: read(findLeased),
    releaseExpired: write((work, nowMs: number) => releaseLeases(work, nowMs), { durable: "later" }),
    // Nothing joins a write of so many rows: it fills its batch.
    moveWaits: write(moveWaits, { rows: 10_000 }),
    list: longRead(listDeliveries),
    find: read(findDelivery),
    retry: audited("delivery.retried", retryDelivery),
    skip: audited("delivery.skipped", skipDelivery),
    findSendable: read(findSendable),
    attempts: longRead(listAttempts),
    attention: longRead(listAttention),
    countPending: longRead(countPending),
    backlog: longRead(countBacklog),
  },
  replays: {
    plan: longRead(planReplay),
    count: longRead(countReplay),
    start: audited("replay.started", startReplay, {
      members: ({ selection }) => newValue("selection", selection),
    }),
    advance: write(advanceReplay),
    running: read(runningReplays),
    find: read(findReplay),
    list: read(listReplays),
    cancel: audited("replay.cancelled", cancelReplay, {
      before: (sql, [id]) => findReplay(sql, id),
      members: (_after, before) => (before?.status === "running" ? [] : undefined),
    }),
  },
  tokens: {
    create: kept(
      audited("token.created", createToken, {
        members: ({ scopes }) => newValue("scopes", scopes.join(" ")),
      }),
    ),
    find: read(findToken),
    list: read(listTokens),
    revoke: kept(
      write(async (sql, id: number, nowMs: number, { managed = false, by }: RevokeOptions = {}) => {
        const revoked = await revokeToken(sql, id, managed ? nowMs : undefined);
        for (const token of revoked) {
          await recordChange(sql, { change: "token.revoked", ...subjectOf(token) }, nowMs, by);
        }
        return revoked[0];
      }),
    ),
    recordUses: write(recordTokenUses),
  },
  audit: {
    list: read(listAudit),
    removeExpired: write(removeAudit, { rows: MAX_REMOVED_ROWS }),
  },
  stats: {
    countRefused: write(countRefused, { durable: "later" }),
    noteRunning: write(noteRunning, { durable: "later" }),
    figures: longRead(readFigures),
    subjects: longRead(statsSubjects),
    removeExpired: write(removeStats, { rows: MAX_REMOVED_ROWS, durable: "later" }),
  },
} as const satisfies Operations;

/** What changes are kept of. */
type AuditedRecord = Action | Subscription | Token | Replay | Delivery;

interface AuditOptions<A extends readonly unknown[], R, B> {
  readonly before?: (sql: Sql, args: A) => Promise<B>;
  /** Answers which members the change gave another value; `undefined` where nothing is kept of it. */
  readonly members?: (after: R, before: B | undefined, args: A) => readonly ChangedMember[] | undefined;
}

/**
 * A write of which is kept who made it, in one transaction with the change itself.
 * @param run answers the record that it changed or made, and something else where it did neither; its last argument is the time
 * @returns an operation with one argument more, who makes the change. Without it, evreg itself does, which is not kept.
 */
function audited<A extends readonly unknown[], R, B>(
  change: AuditedChange,
  run: (work: Work, ...args: A) => Promise<R>,
  { before, members = () => [] }: AuditOptions<A, Extract<R, AuditedRecord>, B> = {},
): WriteOperation<readonly [...A, by?: Actor], R> {
  const argCount = run.length - 1;
  return write(async (work: Work, ...call: readonly [...A, by?: Actor]): Promise<R> => {
    const args = call.slice(0, argCount) as readonly unknown[] as A;
    const by = call[argCount] as Actor | undefined;
    if (by === undefined) return await run(work, ...args);
    const earlier = await before?.(work, args);
    const answer = await run(work, ...args);
    const changed = isRecord(answer) ? members(answer, earlier, args) : undefined;
    if (isRecord(answer) && changed !== undefined) {
      const nowMs = args.at(-1) as number;
      await recordChange(work, { change, ...subjectOf(answer), members: changed }, nowMs, by);
    }
    return answer;
  });
}

function isRecord<R>(answer: R): answer is Extract<R, AuditedRecord> {
  return typeof answer === "object" && answer !== null;
}

/** The record that was changed, by the name that people know it by. */
function subjectOf(record: AuditedRecord): { readonly id: number; readonly name: string } {
  const { rowid: id } = record;
  if ("name" in record) return { id, name: record.name };
  if (!("subscription" in record)) return { id, name: record.action };
  return { id, name: `${record.application}/${record.subscription}#${record.action}` };
}

/** A member that had no value before, or whose values are not kept. */
function newValue(member: string, after: string | null): readonly ChangedMember[] {
  return [{ member, before: null, after }];
}

function updatedMembers(
  after: Subscription,
  before: Subscription,
  { bearer }: SubscriptionPatch,
): readonly ChangedMember[] | undefined {
  // A new bearer value in the place of another changes no member.
  const isNewBearer = bearer?.kind === "own" && before.bearer === "own";
  const members = [
    ...changedMembers(SUBSCRIPTION, before, after),
    ...(isNewBearer ? newValue("bearer_token", null) : []),
  ];
  return members.length === 0 ? undefined : members;
}
