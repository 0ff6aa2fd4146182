import type { JsonSchema } from "../route.ts";
import { nullableTimestamp, record, rowid, text, timestamp } from "./members.ts";

const token = {
  rowid,
  name: text,
  scopes: { type: "array", items: text },
  expires_at: nullableTimestamp,
  last_used_at: nullableTimestamp,
  timestamped: timestamp,
} as const;

/** Tokens as they are answered. */
export const TOKEN_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Token: record(token),
  TokenWithSecret: record({ ...token, token: { ...text, description: "Only ever in this answer." } }),
};
