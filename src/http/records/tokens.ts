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
  Identity: record({
    name: { ...text, description: "Of the token; `local` where the server asks for none." },
    scopes: token.scopes,
    expires_at: { ...nullableTimestamp, description: "When the token ends; `null`: never." },
    data_id: {
      ...text,
      description:
        "Of the data of the server: the same at each of its addresses, and another after a restore of a backup.",
    },
  }),
  TokenWithSecret: record({ ...token, token: { ...text, description: "Only ever in this answer." } }),
};
