import { HTTP_STATUS } from "../domain/error.ts";
import { UNHEALTHY } from "./records/health.ts";
import { one } from "./records/members.ts";
import { reply } from "./reply.ts";
import type { Route } from "./route.ts";

export const HEALTH_ROUTE: Route = {
  method: "GET",
  path: "/health",
  operationId: "getHealth",
  tag: "health",
  summary: "Whether the service commits and delivers",
  access: "open",
  answers: {
    200: { description: "It does.", schema: one("Health") },
    503: { description: "It does not; `error` says why.", schema: UNHEALTHY },
  },
  failures: [],
  async handle(evreg) {
    const { data } = await evreg.health();
    if (data.status === "ok") return reply(200, { data });
    const error = data.reason ?? "The service is unavailable.";
    return reply(503, { data, error, details: {}, code: HTTP_STATUS.unavailable }, [["retry-after", "2"]]);
  },
};
