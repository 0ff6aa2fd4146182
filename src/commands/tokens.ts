import { Flags } from "@oclif/core";
import { TargetCommand, examples } from "../cli/base-command.ts";
import { definedOnly, expiry, textArg, textFlag } from "../cli/flags.ts";
import { listCommand, recordCommand } from "../cli/resource-command.ts";
import { SCOPE_NAMES } from "../domain/token.ts";
import { NEW_TOKEN_RECORD, SCOPE_MAY, TOKENS } from "../cli/views/tokens.ts";
import { systemClock } from "../runtime/clock.ts";

export const TokensList = listCommand(TOKENS, {
  summary: "List the tokens, without the tokens themselves.",
  description:
    "LAST USED is noted at most once a minute for each token, so it can lag by that much; never is a token that has not been used. What a token may do it tells itself: evreg whoami --token-file FILE.",
  examples: ["evreg tokens"],
});

export class TokensCreate extends TargetCommand {
  static override summary = "Create a token. It is printed only once.";
  static override description = `A token may do what its scopes name and nothing else; write holds listen, and admin all the others.

${SCOPE_NAMES.map((name) => `${name}: ${SCOPE_MAY[name]}.`).join("\n")}

A scope can be limited to one application, such as publish:shop. admin:shop may then do all that is done with the actions, events, subscriptions and deliveries of shop, breaking changes of a schema included; tokens, backup, doctor and audit need admin, and metrics read, without a limit.`;
  static override examples = examples("evreg tokens create shop --scope publish:shop --expires 90d", {
    "Two scopes, into a file for --token-file":
      "evreg tokens create deploy --scope read --scope write --json | jq -r .data.token > deploy.token",
  });
  static override args = { name: textArg("What the token is for, to recognise it by.") };
  static override flags = {
    scope: Flags.string({
      summary: `What it may do: ${SCOPE_NAMES.join(", ")}, each alone or for one application, as publish:shop. Can be given more than once.`,
      helpValue: "SCOPE",
      required: true,
      multiple: true,
      multipleNonGreedy: true,
      delimiter: ",",
      member: "scopes",
    }),
    expires: textFlag(
      "When it ends: a time (ISO 8601), or from now on such as 12h or 90d; never when left out.",
      "TIME",
      { member: "expires_at" },
    ),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(TokensCreate);
    const expires_at = flags.expires === undefined ? undefined : expiry(flags.expires, systemClock.now());
    const input = { name: args.name, scopes: flags.scope, ...definedOnly({ expires_at }) };
    const answer = await this.withTarget(
      flags,
      ({ tokens }) => tokens.create(input),
      // A folder that is only the default one would be made wherever this is typed, for a token that opens nothing.
      { creates: flags.data !== undefined || Boolean(process.env["EVREG_DATA"]) ? "folder" : "data" },
    );
    const output = this.outputFor(flags);
    await output.record(answer, NEW_TOKEN_RECORD);
    output.note("The token is shown only now; only a hash of it is kept.");
  }
}

export const TokensRevoke = recordCommand(TOKENS, "revoke", {
  summary: "Revoke a token: from now on it opens nothing.",
  examples: examples("evreg tokens revoke 2", {
    "Find its number": "evreg tokens",
  }),
  after: (_evreg, _token, output) => {
    output.note("Revoked.");
  },
});
