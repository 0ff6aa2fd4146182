import { Args, Command, Flags, loadHelpClass } from "@oclif/core";
import { EXIT } from "../cli/exit-code.ts";
import { HELP_TOPICS, helpOn, isHelpTopic } from "../cli/help-topics/topics.ts";
import { terminalWidth, writeOut } from "../cli/output.ts";
import { usage } from "../cli/usage.ts";
import { nearest } from "../config/nearest.ts";

const MOST_COLUMNS = 80;

export default class Help extends Command {
  static override summary = "Show help for a command, or on a topic.";
  static override description = `Topics: ${HELP_TOPICS.join(", ")}.`;
  static override examples = [
    "<%= config.bin %> help actions create",
    { description: "What the exit codes tell", command: "<%= config.bin %> help exit-codes" },
    { description: "How a handler verifies a delivery", command: "<%= config.bin %> help signatures" },
  ];
  static override args = { command: Args.string({ description: "Command or topic to show help for." }) };
  static override flags = {
    "nested-commands": Flags.boolean({ char: "n", summary: "Show the commands of all topics as well." }),
  };
  /** A command may have two words. */
  static override strict = false;

  async run(): Promise<number> {
    const { argv, flags } = await this.parse(Help);
    const words = argv.map(String);
    const [name = "", more] = words;
    if (more === undefined && isHelpTopic(name)) {
      await writeOut(await helpOn(name, Math.min(terminalWidth() ?? MOST_COLUMNS, MOST_COLUMNS)));
      return EXIT.done;
    }
    const known = name === "" || this.config.findCommand(name) || this.config.findTopic(name);
    const meant = known ? undefined : nearest(name, HELP_TOPICS);
    if (meant !== undefined) {
      throw usage(`There is no help on ${JSON.stringify(name)}; did you mean evreg help ${meant}?`);
    }
    const HelpClass = await loadHelpClass(this.config);
    await new HelpClass(this.config, { all: flags["nested-commands"] }).showHelp(words);
    return EXIT.done;
  }
}
