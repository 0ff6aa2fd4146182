import { one } from "./records/members.ts";
import { reply } from "./reply.ts";
import type { Route } from "./route.ts";

export const WHOAMI_ROUTE: Route = {
  method: "GET",
  path: "/v1/whoami",
  operationId: "whoAmI",
  tag: "tokens",
  summary: "Who the caller is, and what it may do",
  description: "Any token that is valid may ask.",
  access: "token",
  answers: { 200: { description: "The token's name and scopes.", schema: one("Identity") } },
  failures: [],
  async handle(evreg) {
    return reply(200, await evreg.whoami());
  },
};
