import { one } from "./records/members.ts";
import { reply } from "./reply.ts";
import type { Route } from "./route.ts";

export const WHOAMI_ROUTE: Route = {
  method: "GET",
  path: "/v1/whoami",
  operationId: "whoAmI",
  tag: "tokens",
  summary: "Who the caller is, what it may do, and with which data",
  description: "Any token that is valid may ask, and anyone where publishing needs no token.",
  access: "publish",
  answers: {
    200: { description: "The token's name and scopes, and the id of the data.", schema: one("Identity") },
  },
  failures: [],
  async handle(evreg) {
    return reply(200, await evreg.whoami());
  },
};
