import type { AuditEntry } from "../domain/audit.ts";

/** Who changed what. Entries are written by the calls that they report, where these are given who asks. */
export interface AuditStore {
  /** Newest first. */
  list(query: AuditSelection): Promise<readonly AuditEntry[]>;
  /** Removes some of the entries that are older; answers how many. */
  removeExpired(beforeMs: number): Promise<number>;
}

export interface AuditSelection {
  readonly fromMs?: number;
  readonly toMs?: number;
  readonly limit: number;
  readonly after?: number;
}
