import { AUDIT_LIMITS, AUDIT_QUERY } from "../domain/audit.ts";
import type { AuditPort } from "../evreg.ts";
import type { AuditSelection } from "../store/history.ts";
import type { Access } from "./auth.ts";
import type { ServiceContext } from "./context.ts";
import { checkQuery, omitUndefined, timeRange } from "./requests.ts";

/** It tells of all applications. */
export function auditPort({ store }: ServiceContext, access: Access): AuditPort {
  return {
    async list(query = {}) {
      access.require("admin");
      const { limit = AUDIT_LIMITS.listDefault, after } = checkQuery(AUDIT_QUERY, query);
      const selection = { ...timeRange(query), limit, after };
      return { data: await store.audit.list(omitUndefined<AuditSelection>(selection)) };
    },
  };
}
