import { Args, Command, Flags, loadHelpClass } from "@oclif/core";
import { HELP_TOPICS, helpOn, isHelpTopic } from "../cli/help/topics.ts";
import { terminalWidth, writeOut } from "../cli/io/output.ts";
import { EXIT, unknownCommand, usageError } from "../cli/usage-errors.ts";
import { nearest } from "../config/values.ts";

const MOST_COLUMNS = 80;

export default class Help extends Command {
  static override usage = "help [COMMAND | TOPIC] [--nested-commands]";
  static override summary = "Show help for a command, or on a topic.";
  static override description = `Topics: ${HELP_TOPICS.join(", ")}.`;
  static override examples = [
    "<%= config.bin %> help actions create",
    {
      description: "From nothing to a delivery that is verified",
      command: "<%= config.bin %> help getting-started",
    },
    { description: "What the exit codes tell", command: "<%= config.bin %> help exit-codes" },
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
    const [name = "", ...more] = words;
    if (isHelpTopic(name)) {
      if (more.length > 0) {
        throw usageError(`Too many arguments: ${more.join(" ")}. One topic at a time: evreg help ${name}.`);
      }
      await writeOut(await helpOn(name, Math.min(terminalWidth() ?? MOST_COLUMNS, MOST_COLUMNS)));
      return EXIT.done;
    }
    const known = name === "" || this.config.findCommand(name) || this.config.findTopic(name);
    if (!known) throw this.#unknown(name);
    const HelpClass = await loadHelpClass(this.config);
    // As `--help` has them; oclif itself reads them there only.
    const { helpOptions } = this.config.pjson.oclif;
    const help = new HelpClass(this.config, { ...helpOptions, all: flags["nested-commands"] });
    const own = name === Help.id ? this.config.findCommand(name) : undefined;
    // oclif passes over the word help wherever it stands.
    if (own === undefined) await help.showHelp(words);
    else await help.showCommandHelp(own, []);
    return EXIT.done;
  }

  #unknown(name: string): Error {
    const meant = nearest(name, HELP_TOPICS);
    if (meant !== undefined) {
      return usageError(`There is no help on ${JSON.stringify(name)}; did you mean evreg help ${meant}?`);
    }
    const { message } = unknownCommand(name, this.config);
    return usageError(`${message} Beside commands, evreg help has: ${HELP_TOPICS.join(", ")}.`);
  }
}
