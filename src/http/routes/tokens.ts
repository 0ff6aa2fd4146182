import { EvregError } from "../../domain/error.ts";
import { CODE_EXCHANGE, NEW_TOKEN } from "../../domain/token.ts";
import { jsonReply } from "../response.ts";
import { many, one, operation, type Route } from "./route.ts";

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
      if (!context.config.ui.enabled) {
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
    failures: [409],
  }),
  operation("whoami", "whoAmI", "Who the caller is, what it may do, and which data it uses", {
    tag: "tokens",
    description: "Any valid token is enough. Where publishing needs no token, this needs none either.",
    access: "publish",
    answer: [
      "The token's name and scopes, the id of the data, and what goes for all subscriptions.",
      one("Identity"),
    ],
    maxBytes: 0,
  }),
];
