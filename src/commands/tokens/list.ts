import { TargetCommand } from "../../cli/base-command.ts";
import { nextCommand } from "../../cli/target/next-command.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { TOKEN_LIST } from "../../resources/tokens.ts";

export default class TokensList extends TargetCommand {
  static override aliases = ["tokens"];
  static override summary = "List the tokens, without the tokens themselves.";
  static override description =
    "LAST USED is noted at most once a minute for each token, so it can lag by that much; never is a token that has not been used. What a token may do it tells itself: evreg whoami --token-file FILE.";
  static override examples = ["<%= config.bin %> tokens"];

  async run(): Promise<number> {
    const { flags } = await this.parse(TokensList);
    const answer = await this.withTarget(flags, (evreg) => evreg.tokens.list());
    await this.outputFor(flags).list(
      answer,
      TOKEN_LIST,
      `No tokens here. Create one: ${nextCommand("tokens create NAME --scope read")}`,
    );
    return EXIT.done;
  }
}
