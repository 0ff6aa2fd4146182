import { EvregError } from "../../domain/error.ts";
import { CODE_EXCHANGE, NEW_TOKEN } from "../../domain/token.ts";
import { jsonReply } from "../response.ts";
import type { JsonSchema } from "../../domain/request.ts";
import { TOKEN } from "../../model/token.ts";
import { field } from "../../model/field.ts";
import { record, recordOf } from "../../model/schemas.ts";
import { many, one, operation, type Route } from "./route.ts";

/** Tokens as they are answered. */
export const TOKEN_RECORDS: Readonly<Record<string, JsonSchema>> = {
  Token: recordOf(TOKEN),
  Identity: record({
    name: { ...field.text, description: "Of the token; `local` if the server requires none." },
    scopes: TOKEN.scopes.answer,
    expires_at: { ...field.nullableTimestamp, description: "When the token expires; `null`: never." },
    data_id: {
      ...field.text,
      description: "Identifies the server's data: the same at all its addresses, and new after a restore.",
    },
    retries: {
      ...record({
        max_retries: { ...field.count, description: "Of one that is created without a number." },
        retry_schedule: {
          type: ["array", "null"],
          items: field.count,
          description:
            "The waits before each retry in milliseconds, of those without a schedule of their own; the last one goes for all that follow. `null`: 0, 2, 4, 8 and 16 seconds, then doubling up to 6 hours.",
        },
        disable_after_ms: {
          ...field.count,
          description: "A subscription whose attempts all fail for so long is deactivated; 0: never.",
        },
      }),
      description: "The server's settings for subscriptions that say nothing else.",
    },
  }),
  SignInCode: record({
    code: {
      ...field.nullableText,
      description: "Goes behind `/ui/#code=`; `null` where the server requires no token.",
    },
    expires_at: field.nullableTimestamp,
  }),
  TokenWithSecret: recordOf(TOKEN, { token: { ...field.text, description: "Only this answer shows it." } }),
};

const CREATE_CODE: Route = operation(
  "tokens.createCode",
  "createSignInCode",
  "Create a code that signs a browser in",
  {
    description:
      "Any valid token is enough, but for that of a browser. `/ui/#code=<code>` opens the page for browsers, signed in. The code is for one use within two minutes. At most 16 for a token within two minutes.",
    scope: null,
    status: 201,
    answer: ["The code; it is never shown again.", one("SignInCode")],
    failures: [403, 409, 429],
  },
);

export const TOKEN_ROUTES: readonly Route[] = [
  operation("tokens.list", "listTokens", "List tokens, without their secrets", {
    scope: "admin",
    answer: ["The tokens' records.", many("Token")],
  }),
  operation("tokens.create", "createToken", "Create a token", {
    scope: "admin",
    body: NEW_TOKEN,
    status: 201,
    answer: ["The token; it is never shown again.", one("TokenWithSecret")],
  }),
  {
    ...CREATE_CODE,
    handle(evreg, request, context) {
      if (!context.ui.enabled) {
        throw new EvregError("conflict", "The page for browsers is turned off on this server (ui.enabled).");
      }
      if (context.requiresToken.token) return CREATE_CODE.handle(evreg, request, context);
      return jsonReply(201, { data: { code: null, expires_at: null } });
    },
  },
  operation("tokens.exchangeCode", "exchangeSignInCode", "Exchange a code for a token", {
    description:
      "The token is named `browser`, has the scopes of the one that the code was created with, and ends after 12 hours, or with that one if it ends sooner. A code that is exchanged again is refused, and ends the token that was given for it.",
    access: "open",
    body: CODE_EXCHANGE,
    status: 201,
    answer: ["The token; it is never shown again.", one("TokenWithSecret")],
    failures: [401],
  }),
  operation("tokens.revoke", "revokeToken", "Revoke a token", {
    description:
      "A token may revoke itself, whatever its scopes. The tokens of browsers that were signed in with it end with it.",
    scope: "admin",
    answer: ["The revoked token's record.", one("Token")],
    failures: [404, 409],
  }),
];

export const WHOAMI_ROUTE: Route = operation(
  "whoami",
  "whoAmI",
  "Who the caller is, what it may do, and which data it uses",
  {
    tag: "tokens",
    description: "Any valid token is enough. Where publishing needs no token, this needs none either.",
    access: "publish",
    answer: [
      "The token's name and scopes, the id of the data, and what goes for all subscriptions.",
      one("Identity"),
    ],
    maxBytes: 0,
  },
);
