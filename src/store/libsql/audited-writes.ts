import type { Action } from "../../domain/action.ts";
import { type Actor, type AuditedChange, type ChangedMember, changedMembers } from "../../domain/audit.ts";
import type { Delivery } from "../../domain/delivery.ts";
import type { Replay } from "../../domain/replay.ts";
import type { Subscription } from "../../domain/subscription.ts";
import type { Token } from "../../domain/token.ts";
import type { SubscriptionPatch } from "../catalog.ts";
import { recordChange } from "./history/audit.ts";
import { type Work, write, type WriteOperation } from "./thread/operation.ts";
import type { Sql } from "./thread/sql.ts";

/** What changes are kept of. */
type AuditedRecord = Action | Subscription | Token | Replay | Delivery;

interface AuditOptions<A extends readonly unknown[], R, B> {
  /** Reads what the change is compared with. */
  readonly before?: (sql: Sql, args: A) => B;
  /** Answers which members the change gave another value; `undefined` where nothing is kept of it. */
  readonly members?: (after: R, before: B | undefined, args: A) => readonly ChangedMember[] | undefined;
}

/**
 * A write of which is kept who made it, in one transaction with the change itself.
 * @param run answers the record that it changed or made, and something else where it did neither; its last argument is the time
 * @returns an operation with one argument more, who makes the change. Without it, evreg itself does, which is not kept.
 */
export function audited<A extends readonly unknown[], R, B>(
  change: AuditedChange,
  run: (work: Work, ...args: A) => R,
  { before, members = () => [] }: AuditOptions<A, Extract<R, AuditedRecord>, B> = {},
): WriteOperation<readonly [...A, by?: Actor], R> {
  const argCount = run.length - 1;
  return write((work: Work, ...call: readonly [...A, by?: Actor]): R => {
    const args = call.slice(0, argCount) as readonly unknown[] as A;
    const by = call[argCount] as Actor | undefined;
    if (by === undefined) return run(work, ...args);
    const earlier = before?.(work, args);
    const answer = run(work, ...args);
    const changed = isRecord(answer) ? members(answer, earlier, args) : undefined;
    if (isRecord(answer) && changed !== undefined) {
      const nowMs = args.at(-1) as number;
      recordChange(work, { change, ...subjectOf(answer), members: changed }, nowMs, by);
    }
    return answer;
  });
}

function isRecord<R>(answer: R): answer is Extract<R, AuditedRecord> {
  return typeof answer === "object" && answer !== null;
}

/** The record that was changed, by the name that people know it by. */
export function subjectOf(record: AuditedRecord): { readonly id: number; readonly name: string } {
  const { rowid: id } = record;
  if ("name" in record) return { id, name: record.name };
  if (!("subscription" in record)) return { id, name: record.action };
  return { id, name: `${record.application}/${record.subscription}#${record.action}` };
}

/** A member that had no value before, or whose values are not kept. */
export function newValue(member: string, after: string | null): readonly ChangedMember[] {
  return [{ member, before: null, after }];
}

export function updatedMembers(
  after: Subscription,
  before: Subscription,
  { bearer }: SubscriptionPatch,
): readonly ChangedMember[] | undefined {
  // A new bearer value in the place of another changes no member.
  const isNewBearer = bearer?.kind === "own" && before.bearer === "own";
  const members = [...changedMembers(before, after), ...(isNewBearer ? newValue("bearer_token", null) : [])];
  return members.length === 0 ? undefined : members;
}
