import { NEW_TOKEN } from "../../domain/token.ts";
import { field, type JsonSchema, many, one, operation, record, type Route } from "./route.ts";

const token = {
  rowid: field.rowid,
  name: field.text,
  scopes: { type: "array", items: field.text },
  expires_at: field.nullableTimestamp,
  last_used_at: field.nullableTimestamp,
  timestamped: field.timestamp,
} as const;

/** Tokens as they are answered. */
export const TOKEN_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Token: record(token),
  Identity: record({
    name: { ...field.text, description: "Of the token; `local` where the server asks for none." },
    scopes: token.scopes,
    expires_at: { ...field.nullableTimestamp, description: "When the token ends; `null`: never." },
    data_id: {
      ...field.text,
      description:
        "Of the data of the server: the same at each of its addresses, and another after a restore of a backup.",
    },
  }),
  TokenWithSecret: record({ ...token, token: { ...field.text, description: "Only ever in this answer." } }),
};

export const TOKEN_ROUTES: readonly Route[] = [
  operation({
    path: "/v1/tokens",
    operationId: "listTokens",
    summary: "Tokens, without the tokens themselves",
    scope: "admin",
    answer: ["The tokens' records.", many("Token")],
    run: (evreg) => evreg.tokens.list(),
  }),
  operation({
    path: "/v1/tokens",
    operationId: "createToken",
    summary: "Make a token",
    scope: "admin",
    body: NEW_TOKEN,
    status: 201,
    answer: ["The token; it is never shown again.", one("TokenWithSecret")],
    run: (evreg, { body }) => evreg.tokens.create(body),
  }),
  operation({
    method: "DELETE",
    path: "/v1/tokens/:id",
    operationId: "revokeToken",
    summary: "Revoke a token",
    scope: "admin",
    answer: ["The revoked token's record.", one("Token")],
    failures: [404, 409],
    run: (evreg, { id }) => evreg.tokens.revoke(id),
  }),
];

export const WHOAMI_ROUTE: Route = operation({
  path: "/v1/whoami",
  operationId: "whoAmI",
  tag: "tokens",
  summary: "Who the caller is, what it may do, and with which data",
  description: "Any token that is valid may ask, and anyone where publishing needs no token.",
  access: "publish",
  answer: ["The token's name and scopes, and the id of the data.", one("Identity")],
  maxBytes: 0,
  run: (evreg) => evreg.whoami(),
});
