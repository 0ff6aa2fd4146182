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
    name: { ...field.text, description: "Of the token; `local` if the server requires none." },
    scopes: token.scopes,
    expires_at: { ...field.nullableTimestamp, description: "When the token expires; `null`: never." },
    data_id: {
      ...field.text,
      description: "Identifies the server's data: the same at all its addresses, and new after a restore.",
    },
  }),
  TokenWithSecret: record({ ...token, token: { ...field.text, description: "Only this answer shows it." } }),
};

export const TOKEN_ROUTES: readonly Route[] = [
  operation("GET /v1/tokens", "listTokens", "List tokens, without their secrets", {
    scope: "admin",
    answer: ["The tokens' records.", many("Token")],
    run: (evreg) => evreg.tokens.list(),
  }),
  operation("POST /v1/tokens", "createToken", "Create a token", {
    isAudited: true,
    scope: "admin",
    body: NEW_TOKEN,
    status: 201,
    answer: ["The token; it is never shown again.", one("TokenWithSecret")],
    run: (evreg, { body }) => evreg.tokens.create(body),
  }),
  operation("DELETE /v1/tokens/:id", "revokeToken", "Revoke a token", {
    isAudited: true,
    scope: "admin",
    answer: ["The revoked token's record.", one("Token")],
    failures: [404, 409],
    run: (evreg, { id }) => evreg.tokens.revoke(id),
  }),
];

export const WHOAMI_ROUTE: Route = operation(
  "GET /v1/whoami",
  "whoAmI",
  "Who the caller is, what it may do, and which data it uses",
  {
    tag: "tokens",
    description: "Any valid token is enough. Where publishing needs no token, this needs none either.",
    access: "publish",
    answer: ["The token's name and scopes, and the id of the data.", one("Identity")],
    maxBytes: 0,
    run: (evreg) => evreg.whoami(),
  },
);
