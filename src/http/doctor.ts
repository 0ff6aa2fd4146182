import { FINDINGS_META } from "./records/doctor.ts";
import { many } from "./records/members.ts";
import { reply } from "./reply.ts";
import type { Route } from "./route.ts";

export const DOCTOR_ROUTE: Route = {
  method: "GET",
  path: "/v1/doctor",
  operationId: "examine",
  tag: "health",
  summary: "What is well, what is wrong, and what to do about it",
  description:
    "The store, its folder and disk, the clock, tokens near their end, handlers that fail and what waits. A finding that something is wrong is answered with 200 as well. `meta.time` is the server's clock.",
  access: "token",
  scope: "admin",
  answers: {
    200: {
      description: "What was looked at, each with what was found.",
      schema: many("Finding", FINDINGS_META),
    },
  },
  failures: [],
  async handle(evreg) {
    return reply(200, await evreg.doctor());
  },
};
