import { NEW_TOKEN, type NewToken } from "../../domain/token.ts";
import { parseJson } from "../../json/raw-json.ts";
import { PAGE_BYTES } from "../response-budget.ts";
import { reply } from "../response.ts";
import {
  BODY_MAX_BYTES,
  type JsonSchema,
  many,
  nullableTimestamp,
  one,
  record,
  type Route,
  rowid,
  text,
  timestamp,
} from "./route.ts";

const token = {
  rowid,
  name: text,
  scopes: { type: "array", items: text },
  expires_at: nullableTimestamp,
  last_used_at: nullableTimestamp,
  timestamped: timestamp,
} as const;

/** Tokens as they are answered. */
export const TOKEN_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Token: record(token),
  Identity: record({
    name: { ...text, description: "Of the token; `local` where the server asks for none." },
    scopes: token.scopes,
    expires_at: { ...nullableTimestamp, description: "When the token ends; `null`: never." },
    data_id: {
      ...text,
      description:
        "Of the data of the server: the same at each of its addresses, and another after a restore of a backup.",
    },
  }),
  TokenWithSecret: record({ ...token, token: { ...text, description: "Only ever in this answer." } }),
};

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
