import { type Actor, changedMembers } from "../../domain/audit.ts";
import type { Delivery } from "../../domain/delivery.ts";
import type { Subscription } from "../../domain/subscription.ts";
import { createAction, findAction, reviseAction } from "./catalog/actions.ts";
import { createToken, revokeToken } from "./catalog/credentials.ts";
import {
  createSubscription,
  deleteSubscription,
  findSubscription,
  rotateSecret,
  updateSubscription,
} from "./catalog/subscriptions.ts";
import { recordChange } from "./history/audit.ts";
import { cancelReplay, findReplay, startReplay } from "./history/replays.ts";
import { retryDelivery, skipDelivery } from "./queue/deliveries.ts";
import type { Sql } from "./thread/sql.ts";

// Writes of which is kept who made them: each with the change itself, in one transaction. Their last argument says who.

type By = Actor | undefined;
type Rest<F> = F extends (sql: Sql, ...rest: infer R) => unknown ? R : never;

export const audited = {
  createAction: (sql: Sql, input: Rest<typeof createAction>[0], nowMs: number, by?: By) => {
    const made = createAction(sql, input, nowMs);
    recordChange(sql, { change: "action.created", id: made.rowid, name: made.action }, nowMs, by);
    return made;
  },
  reviseAction: (sql: Sql, input: Rest<typeof reviseAction>[0], nowMs: number, by?: By) => {
    const before = by === undefined ? undefined : findAction(sql, input.action);
    const revised = reviseAction(sql, input, nowMs);
    if (before === undefined || revised === undefined || revised === "stale") return revised;
    const members = changedMembers(before, revised);
    const { rowid: id, action: name } = revised;
    recordChange(sql, { change: "action.updated", id, name, members }, nowMs, by);
    return revised;
  },
  createSubscription: (
    sql: Sql,
    input: Rest<typeof createSubscription>[0],
    nowMs: number,
    key?: Uint8Array,
    by?: By,
  ) => {
    const made = createSubscription(sql, input, nowMs, key);
    recordChange(sql, { change: "subscription.created", ...named(made) }, nowMs, by);
    return made;
  },
  updateSubscription: (
    sql: Sql,
    id: number,
    patch: Rest<typeof updateSubscription>[1],
    nowMs: number,
    key?: Uint8Array,
    by?: By,
  ) => {
    const before = by === undefined ? undefined : findSubscription(sql, id);
    const updated = updateSubscription(sql, id, patch, nowMs, key);
    const after = updated.answer;
    if (before === undefined || after === undefined) return updated;
    const members = changedMembers(before, after);
    // A new bearer value in the place of another changes no member.
    const isOwn = patch.bearer?.kind === "own" && before.bearer === "own";
    const all = isOwn ? [...members, { member: "bearer_token", before: null, after: null }] : members;
    if (all.length > 0) {
      recordChange(sql, { change: "subscription.updated", ...named(after), members: all }, nowMs, by);
    }
    return updated;
  },
  rotateSecret: (
    sql: Sql,
    id: number,
    rotation: Rest<typeof rotateSecret>[1],
    nowMs: number,
    key?: Uint8Array,
    by?: By,
  ) => {
    const rotated = rotateSecret(sql, id, rotation, nowMs, key);
    if (rotated !== undefined) {
      recordChange(sql, { change: "subscription.secret_rotated", ...named(rotated) }, nowMs, by);
    }
    return rotated;
  },
  /** Deliveries that somebody else gets are signed with its secret. */
  noteSecretUse: (sql: Sql, id: number, consumer: string, nowMs: number, by?: By): void => {
    const used = by === undefined ? undefined : findSubscription(sql, id);
    if (used === undefined) return;
    const members = [{ member: "consumer", before: null, after: consumer }];
    recordChange(sql, { change: "subscription.secret_used", ...named(used), members }, nowMs, by);
  },
  deleteSubscription: (sql: Sql, id: number, nowMs: number, by?: By) => {
    const deleted = deleteSubscription(sql, id, nowMs);
    if (deleted.answer !== undefined) {
      recordChange(sql, { change: "subscription.deleted", ...named(deleted.answer) }, nowMs, by);
    }
    return deleted;
  },
  createToken: (sql: Sql, input: Rest<typeof createToken>[0], nowMs: number, by?: By) => {
    const made = createToken(sql, input, nowMs);
    const { rowid: id, name, scopes } = made;
    const members = [{ member: "scopes", before: null, after: scopes.join(" ") }];
    recordChange(sql, { change: "token.created", id, name, members }, nowMs, by);
    return made;
  },
  revokeToken: (
    sql: Sql,
    id: number,
    nowMs: number,
    { managed = false, by }: { readonly managed?: boolean; readonly by?: By } = {},
  ) => {
    const all = revokeToken(sql, id, managed ? nowMs : undefined);
    for (const { rowid, name } of all) {
      recordChange(sql, { change: "token.revoked", id: rowid, name }, nowMs, by);
    }
    return all[0];
  },
  startReplay: (sql: Sql, plan: Rest<typeof startReplay>[0], nowMs: number, by?: By) => {
    const started = startReplay(sql, plan, nowMs);
    if (started !== undefined) {
      const members = [{ member: "selection", before: null, after: started.selection }];
      recordChange(sql, { change: "replay.started", ...named(started), members }, nowMs, by);
    }
    return started;
  },
  cancelReplay: (sql: Sql, id: number, nowMs: number, by?: By) => {
    const wasRunning = by !== undefined && findReplay(sql, id)?.status === "running";
    const cancelled = cancelReplay(sql, id, nowMs);
    if (wasRunning && cancelled.answer !== undefined) {
      recordChange(sql, { change: "replay.cancelled", ...named(cancelled.answer) }, nowMs, by);
    }
    return cancelled;
  },
  retryDelivery: (sql: Sql, id: number, nowMs: number, by?: By) => {
    const retried = retryDelivery(sql, id, nowMs);
    if (retried !== undefined)
      recordChange(sql, { change: "delivery.retried", ...named(retried) }, nowMs, by);
    return retried;
  },
  skipDelivery: (sql: Sql, id: number, nowMs: number, by?: By) => {
    const skipped = skipDelivery(sql, id, nowMs);
    if (skipped.answer !== undefined) {
      recordChange(sql, { change: "delivery.skipped", ...named(skipped.answer) }, nowMs, by);
    }
    return skipped;
  },
} as const;

/** By the subscription's name, which is known to people. */
function named({
  rowid,
  application,
  subscription,
  action,
}: Pick<Subscription | Delivery, "rowid" | "application" | "subscription" | "action">): {
  readonly id: number;
  readonly name: string;
} {
  return { id: rowid, name: `${application}/${subscription}#${action}` };
}
