import { field, type Fields, record } from "./field.ts";

/** What is kept of who changed what. */
export const AUDITED_CHANGES = [
  "action.created",
  "action.updated",
  "subscription.created",
  "subscription.updated",
  "subscription.secret_rotated",
  // Only by earlier versions.
  "subscription.secret_used",
  "subscription.deleted",
  "token.created",
  "token.revoked",
  "replay.started",
  "replay.cancelled",
  "delivery.retried",
  "delivery.skipped",
  "data.restored",
] as const;

const value = { type: ["string", "number", "boolean", "null"] } as const;

/** One change, as it was made. */
export const AUDIT_ENTRY = {
  rowid: { answer: field.rowid },
  timestamped: { answer: field.timestamp },
  change: { answer: { type: "string", enum: AUDITED_CHANGES } },
  record_id: { answer: field.nullableCount, about: "Rowid of what was changed; `null` for all data." },
  name: {
    answer: field.text,
    about: "Of what was changed: an action, `billing/invoices#order.created`, a token's name.",
  },
  by: { answer: field.text, about: "The token's name; `local` for who holds the data folder itself." },
  token_id: { answer: field.nullableCount },
  address: {
    answer: field.nullableText,
    about: "Where the request came from: behind a proxy, the proxy's address.",
  },
  members: {
    answer: {
      type: "array",
      items: record({ member: field.text, before: value, after: value }),
      description:
        "What an update changed; of a new token its scopes, of a replay what it sends. `before` and `after` are `null` for long values and for those that may hold a credential.",
    },
  },
} as const satisfies Fields;
