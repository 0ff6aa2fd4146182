import { TargetCommand } from "../../cli/base-command.ts";
import { rowidArg } from "../../cli/flags.ts";
import { note } from "../../cli/io/output.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { TOKEN_RECORD } from "../../resources/tokens.ts";

export default class TokensRevoke extends TargetCommand {
  static override summary = "Revoke a token: from now on it opens nothing.";
  static override examples = [
    "<%= config.bin %> tokens revoke 2",
    { description: "Find its number", command: "<%= config.bin %> tokens" },
  ];
  static override args = { id: rowidArg("token") };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(TokensRevoke);
    const answer = await this.withTarget(flags, (evreg) => evreg.tokens.revoke(args.id));
    const output = this.outputFor(flags);
    await output.record(answer, TOKEN_RECORD);
    if (output.format === "table") note("Revoked.");
    return EXIT.done;
  }
}
