import { field, type Fields } from "./field.ts";

/** What lets its holder in. */
export const TOKEN = {
  rowid: { answer: field.rowid, title: "ID" },
  name: { answer: field.text, title: "Name" },
  scopes: { answer: { type: "array", items: field.text }, title: "Scopes" },
  expires_at: { answer: field.nullableTimestamp, title: "Expires" },
  last_used_at: { answer: field.nullableTimestamp, title: "Last used" },
  timestamped: { answer: field.timestamp, title: "Created" },
} as const satisfies Fields;
