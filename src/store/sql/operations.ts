import { type Actor, type AuditedChange, type ChangedMember, changedMembers } from "../../domain/audit.ts";
import { ACTION } from "../../model/action.ts";
import { SUBSCRIPTION } from "../../model/subscription.ts";
import type { Action } from "../../domain/action.ts";
import type { Delivery } from "../../domain/delivery.ts";
import type { Replay } from "../../domain/replay.ts";
import type { Subscription } from "../../domain/subscription.ts";
import type { Token } from "../../domain/token.ts";
import type { SubscriptionPatch } from "../catalog.ts";
import * as actions from "./catalog/actions.ts";
import * as credentials from "./catalog/credentials.ts";
import * as subscriptions from "./catalog/subscriptions.ts";
import * as events from "./events/list.ts";
import { moveWaits, moveWaitsAtStart } from "./events/timeline.ts";
import { listAudit, recordChange, removeAudit } from "./history/audit.ts";
import * as stats from "./history/stats.ts";
import * as replays from "./history/replays.ts";
import { removeExpired } from "./history/retention.ts";
import { listAttention } from "./queue/attention.ts";
import * as backlog from "./queue/backlog.ts";
import * as deliveries from "./queue/deliveries.ts";
import * as claims from "./queue/claim.ts";
import { listDeliveries } from "./queue/delivery-list.ts";
import * as leases from "./queue/leases.ts";
import { finishAttempts } from "./queue/finish.ts";
import {
  joined,
  kept,
  longRead,
  MAX_REMOVED_ROWS,
  type Notice,
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
    createAction: audited("action.created", actions.createAction),
    findAction: read(actions.findAction),
    listActions: read(actions.listActions),
    nearestAction: read(actions.nearestAction),
    reviseAction: audited("action.updated", actions.reviseAction, {
      before: (sql, [{ action }]) => actions.findAction(sql, action),
      members: (after, before) => before && changedMembers(ACTION, before, after),
    }),
    listRevisions: read(actions.listRevisions),
    createSubscription: audited("subscription.created", subscriptions.createSubscription),
    findSubscription: read(subscriptions.findSubscription),
    listSubscriptions: read(subscriptions.listSubscriptions),
    updateSubscription: audited("subscription.updated", subscriptions.updateSubscription, {
      before: (sql, [id]) => subscriptions.findSubscription(sql, id),
      members: (after, before, [, patch]) => before && updatedMembers(after, before, patch),
    }),
    rotateSecret: audited("subscription.secret_rotated", subscriptions.rotateSecret),
    deleteSubscription: audited("subscription.deleted", subscriptions.deleteSubscription),
  },
  events: {
    record: joined(claims.recordAndClaim),
    list: longRead(events.listEvents),
    first: read(events.listEvents),
    find: read(events.findEvent),
    countDeliveries: longRead(deliveries.countDeliveries),
    removeExpired: write(removeExpired, { rows: MAX_REMOVED_ROWS }),
  },
  queue: {
    claim: write(claims.claimDue, { durable: "later" }),
    claimForConsumers: write(claims.claimForConsumers, { durable: "later" }),
    finish: joined(finishAttempts),
    extend: write(leases.extendLeases, { durable: "later" }),
    findLeased: read(leases.findLeased),
    releaseExpired: write((work, nowMs: number) => leases.releaseLeases(work, nowMs), { durable: "later" }),
    // Nothing joins a write of so many rows: it fills its batch.
    moveWaits: write(moveWaits, { rows: 10_000 }),
    list: longRead(listDeliveries),
    find: read(deliveries.findDelivery),
    retry: audited("delivery.retried", deliveries.retryDelivery),
    skip: audited("delivery.skipped", deliveries.skipDelivery),
    findSendable: read(claims.findSendable),
    attempts: longRead(deliveries.listAttempts),
    attention: longRead(listAttention),
    countPending: longRead(backlog.countPending),
    backlog: longRead(backlog.countBacklog),
  },
  replays: {
    count: longRead(replays.countReplay),
    start: audited("replay.started", replays.startReplay, {
      members: ({ selection }) => newValue("selection", selection),
    }),
    advance: write(replays.advanceReplay),
    find: read(replays.findReplay),
    list: read(replays.listReplays),
    cancel: audited("replay.cancelled", replays.cancelReplay, {
      before: (sql, [id]) => replays.findReplay(sql, id),
      members: (_after, before) => (before?.status === "running" ? [] : undefined),
    }),
  },
  tokens: {
    create: audited("token.created", credentials.createToken, {
      members: ({ scopes }) => newValue("scopes", scopes.join(" ")),
    }),
    find: read(credentials.findToken),
    list: read(credentials.listTokens),
    revoke: audited("token.revoked", credentials.revokeToken),
    recordUse: write(credentials.recordTokenUse, { durable: "later" }),
  },
  audit: {
    list: read(listAudit),
    removeExpired: write(removeAudit, { rows: MAX_REMOVED_ROWS }),
  },
  stats: {
    figures: longRead(stats.readFigures),
    subjects: longRead(stats.statsSubjects),
    removeExpired: write(stats.removeStats, { rows: MAX_REMOVED_ROWS, durable: "later" }),
  },
} as const satisfies Operations;

/**
 * Brings data that were opened up to date, each step in a transaction of its own.
 * @param place what messages call the data
 * @param notices gets what the log is to say
 * @returns whether the data were made by that
 */
export async function prepareData(
  transaction: <T>(step: (work: Work) => Promise<T>) => Promise<T>,
  nowMs: number,
  place: string,
  notices: Notice[],
): Promise<boolean> {
  const isNew = await transaction((work) => actions.ensureServiceActions(work, nowMs));
  const setBack = await transaction((work) => moveWaitsAtStart(work, nowMs));
  if (setBack !== undefined) {
    const message = `The clock is behind the latest time in ${place}, and what waits was moved with it. Let a time service set the clock.`;
    notices.push({ level: "warn", details: setBack, message });
  }
  await transaction((work) => credentials.deleteExpiredSecrets(work, nowMs));
  return isNew;
}

/** What changes are kept of. */
type AuditedRecord = Action | Subscription | Token | Replay | Delivery;

interface AuditOptions<A extends readonly unknown[], R, B> {
  readonly before?: (sql: Sql, args: A) => Promise<B>;
  /** Answers which members the change gave another value; `undefined` where nothing is kept of it. */
  readonly members?: (after: R, before: B | undefined, args: A) => readonly ChangedMember[] | undefined;
}

/**
 * A write of which is kept who made it, in one transaction with the change itself. It is answered once all nodes know it.
 * @param run answers the record that it changed or made, and something else where it did neither; its last argument is the time
 * @returns an operation with one argument more, who makes the change. Without it, evreg itself does, which is not kept.
 */
function audited<A extends readonly unknown[], R, B>(
  change: AuditedChange,
  run: (work: Work, ...args: A) => Promise<R>,
  { before, members = () => [] }: AuditOptions<A, Extract<R, AuditedRecord>, B> = {},
): WriteOperation<readonly [...A, by?: Actor], R> {
  const argCount = run.length - 1;
  const keeping = async (work: Work, ...call: readonly [...A, by?: Actor]): Promise<R> => {
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
  };
  return kept(write(keeping));
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
