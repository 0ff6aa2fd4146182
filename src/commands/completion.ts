import { Args } from "@oclif/core";
import { PlainCommand } from "../cli/base-command.ts";
import { SCRIPTS, type Shell } from "../cli/completion/scripts.ts";
import { EXIT } from "../cli/exit-code.ts";
import { writeOut } from "../cli/output.ts";

export default class Completion extends PlainCommand {
  static override summary = "Print the script that completes evreg's command lines in a shell.";
  static override description =
    "It completes commands, flags and their values, and from the server a command would act on the names of actions and applications and the numbers of subscriptions, replays and tokens. A data folder without a server, one that takes longer than a second, and events and deliveries are left out. The script asks the program evreg, which must be found by that name on the PATH: an alias, or npx without an installed evreg, completes nothing.";
  static override examples = [
    { description: "bash, in ~/.bashrc", command: "source <(<%= config.bin %> completion bash)" },
    { description: "zsh, in ~/.zshrc after compinit", command: "source <(<%= config.bin %> completion zsh)" },
    {
      description: "fish, once",
      command: "<%= config.bin %> completion fish > ~/.config/fish/completions/<%= config.bin %>.fish",
    },
  ];
  static override args = {
    shell: Args.string({
      description: "bash, zsh or fish.",
      options: Object.keys(SCRIPTS),
      required: true,
      ignoreStdin: true,
    }),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(Completion);
    const script = SCRIPTS[args.shell as Shell];
    const output = this.outputFor(flags);
    if (output.format === "table") await writeOut(script);
    else await output.document({ data: script });
    return EXIT.done;
  }
}
