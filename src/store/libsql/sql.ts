import type { InArgs, ResultSet } from "@libsql/client/sqlite3";
import { checkText } from "./text.ts";

export type SqlValue = string | number | bigint | boolean | null | Uint8Array;

/** Runs statements, inside a transaction or between two. */
export interface Sql {
  /** The rows as objects by column name; BLOBs come as ArrayBuffers. */
  rows<T>(text: string, ...values: SqlValue[]): Promise<readonly T[]>;
  first<T>(text: string, ...values: SqlValue[]): Promise<T | undefined>;
  /** Answers how many rows were changed. */
  run(text: string, ...values: SqlValue[]): Promise<number>;
}

/** @param execute how the driver runs one statement; its failures are the caller's to translate */
export function sqlOn(execute: (statement: { sql: string; args: InArgs }) => Promise<ResultSet>): Sql {
  const query = (sql: string, values: SqlValue[]): Promise<ResultSet> =>
    execute({ sql, args: values.map(bindable) });
  return {
    rows: async <T>(text: string, ...values: SqlValue[]) =>
      (await query(text, values)).rows as unknown as readonly T[],
    first: async <T>(text: string, ...values: SqlValue[]) =>
      (await query(text, values)).rows[0] as unknown as T | undefined,
    run: async (text, ...values) => (await query(text, values)).rowsAffected,
  };
}

/** The driver binds every JavaScript number as a REAL; whole ones are meant as integers. */
function bindable(value: SqlValue): string | number | bigint | boolean | null | Uint8Array {
  if (typeof value === "string") return checkText("text", value);
  if (typeof value === "number" && Number.isSafeInteger(value)) return BigInt(value);
  return value;
}
