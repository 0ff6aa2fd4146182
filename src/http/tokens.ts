import { NEW_TOKEN } from "../domain/requests/tokens.ts";
import type { NewToken } from "../domain/token.ts";
import { parseJson } from "../json/parse.ts";
import { PAGE_BYTES } from "./answer-memory.ts";
import { many, one } from "./records/members.ts";
import { reply } from "./reply.ts";
import { BODY_MAX_BYTES } from "./route.ts";
import type { Route } from "./route.ts";

const tag = "tokens";

export const TOKEN_ROUTES: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/tokens",
    operationId: "listTokens",
    tag,
    summary: "Tokens, without the tokens themselves",
    access: "token",
    scope: "admin",
    answers: { 200: { description: "The tokens' records.", schema: many("Token") } },
    failures: [],
    async handle(evreg, incoming, { memory }) {
      return memory.answer(incoming, PAGE_BYTES, async () => reply(200, await evreg.tokens.list()));
    },
  },
  {
    method: "POST",
    path: "/v1/tokens",
    operationId: "createToken",
    tag,
    summary: "Make a token",
    access: "token",
    scope: "admin",
    body: NEW_TOKEN,
    answers: { 201: { description: "The token; it is never shown again.", schema: one("TokenWithSecret") } },
    failures: [],
    async handle(evreg, incoming) {
      const input = parseJson(await incoming.body(BODY_MAX_BYTES)) as NewToken;
      return reply(201, await evreg.tokens.create(input));
    },
  },
  {
    method: "DELETE",
    path: "/v1/tokens/:id",
    operationId: "revokeToken",
    tag,
    summary: "Revoke a token",
    access: "token",
    scope: "admin",
    answers: { 200: { description: "The revoked token's record.", schema: one("Token") } },
    failures: [404, 409],
    async handle(evreg, incoming) {
      return reply(200, await evreg.tokens.revoke(incoming.id()));
    },
  },
];
