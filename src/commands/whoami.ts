import { TargetCommand } from "../cli/base-command.ts";
import { EXIT } from "../cli/usage-errors.ts";
import { identityColumns } from "../resources/tokens.ts";

export default class Whoami extends TargetCommand {
  static override summary = "Show where commands act, who you are there, and what you may do.";
  static override description =
    "Asks the server, so it also tells whether the address and the token are right; ends with 4 when the token is not. On a data folder without a server you may do everything. With --json it is what the API answers: who you are and what you may do; where that is, evreg config and evreg context tell.";
  static override examples = [
    "<%= config.bin %> whoami",
    {
      description: "Whether a token works, before it is given to somebody",
      command: "<%= config.bin %> whoami --url https://events.example.com --token-file ci.token",
    },
    { description: "In a script", command: "<%= config.bin %> whoami --json | jq -r '.data.scopes[]'" },
  ];

  async run(): Promise<number> {
    const { flags } = await this.parse(Whoami);
    return this.withTarget(flags, async (evreg, target) => {
      await this.outputFor(flags).record(await evreg.whoami(), identityColumns(target));
      return EXIT.done;
    });
  }
}
