import { AUDIT_QUERY, AUDITED_CHANGES } from "../../domain/audit.ts";
import type { JsonSchema } from "../../domain/request.ts";
import { field } from "../../model/field.ts";
import { record } from "../../model/schemas.ts";
import { many, operation, type Route } from "./route.ts";

const value: JsonSchema = { type: ["string", "number", "boolean", "null"] };

/** Changes as they are answered. */
export const AUDIT_RECORDS: Readonly<Record<string, JsonSchema>> = {
  AuditEntry: record({
    rowid: field.rowid,
    timestamped: field.timestamp,
    change: { type: "string", enum: AUDITED_CHANGES },
    record_id: { ...field.nullableCount, description: "Rowid of what was changed; `null` for all data." },
    name: {
      ...field.text,
      description: "Of what was changed: an action, `billing/invoices#order.created`, a token's name.",
    },
    by: { ...field.text, description: "The token's name; `local` for who holds the data folder itself." },
    token_id: field.nullableCount,
    address: {
      ...field.nullableText,
      description: "Where the request came from: behind a proxy, the proxy's address.",
    },
    members: {
      type: "array",
      items: record({ member: field.text, before: value, after: value }),
      description:
        "What an update changed; of a new token its scopes, of a replay what it sends. `before` and `after` are `null` for long values and for those that may hold a credential.",
    },
  }),
};

export const AUDIT_ROUTE: Route = operation(
  "audit.list",
  "listAudit",
  "List who changed what, newest first",
  {
    scope: "admin",
    description:
      "Changes of actions, subscriptions and tokens, replays that were begun or cancelled, skipped deliveries, and restores. Kept for `retention.audit` of the configuration.",
    query: AUDIT_QUERY,
    answer: ["The changes.", many("AuditEntry")],
  },
);
