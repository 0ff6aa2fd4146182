import { workOn } from "../../src/store/sql/operation.ts";
import type { SyncSql, SyncWork } from "../../src/store/libsql/statements.ts";
import type { FinishOptions } from "../../src/store/queue.ts";
import type { EventBatch, FinishedRow } from "../../src/store/sql/queue/wire.ts";

interface Events {
  readonly nowMs: number;
  readonly atomic?: boolean;
  /** Four for each event: actionId, revision, offset, length. */
  readonly rows: readonly number[];
  readonly keys?: readonly (string | null)[];
}

/** A call that records events. */
export function eventBatch({ nowMs, atomic = false, rows, keys }: Events): EventBatch {
  const events = Array.from({ length: rows.length / 4 }, (_, index) => {
    const [actionId = 0, revision = 0, offset = 0, length = 0] = rows.slice(index * 4, index * 4 + 4);
    return { actionId, revision, offset, length, idempotencyKey: keys?.[index] ?? null, nowMs };
  });
  return { atomic, events };
}

type Given = Pick<FinishedRow, "deliveryId" | "claimId" | "ending"> & Partial<FinishedRow>;

/** Results of attempts of a millisecond as the store's thread has them. */
export function finished(
  rows: readonly Given[],
  nowMs: number,
  options: FinishOptions = {},
): readonly FinishedRow[] {
  return rows.map((row) => ({ startedAtMs: 1, durationMs: 1, ...row, nowMs, options }));
}

/** What operations work with, and these bytes. */
export function withBytes(sql: SyncSql, bytes: Uint8Array): SyncWork {
  return workOn(sql, undefined, new Uint8Array(bytes).buffer);
}
