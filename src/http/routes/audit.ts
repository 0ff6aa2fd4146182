import { AUDIT_QUERY } from "../../domain/audit.ts";
import type { JsonSchema } from "../../domain/request.ts";
import { AUDIT_ENTRY } from "../../model/audit.ts";
import { recordOf } from "../../model/schemas.ts";
import { many, operation, type Route } from "./route.ts";

/** Changes as they are answered. */
export const AUDIT_RECORDS: Readonly<Record<string, JsonSchema>> = {
  AuditEntry: recordOf(AUDIT_ENTRY),
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
