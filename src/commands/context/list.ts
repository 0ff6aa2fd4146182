import { BaseCommand } from "../../cli/base-command.ts";
import { note } from "../../cli/io/output.ts";
import { escapeControl } from "../../cli/io/text.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { Contexts } from "../../config/contexts.ts";
import { CONTEXT_LIST, shownContext } from "../../resources/contexts.ts";

export default class ContextList extends BaseCommand {
  static override aliases = ["context"];
  static override summary = "List the contexts: servers under names of your own, each with its token.";
  static override description =
    "Commands act on the context in use unless a flag, a variable or the configuration file names a server or a data folder. Contexts are kept in your own settings folder, and only you can read them.";
  static override examples = [
    "<%= config.bin %> context",
    {
      description: "Names and addresses only",
      command: "<%= config.bin %> context --json | jq -r '.data[] | [.name, .url] | @tsv'",
    },
  ];

  async run(): Promise<number> {
    const { flags } = await this.parse(ContextList);
    const contexts = new Contexts(this.config.configDir);
    const inUse = contexts.inUse();
    const data = contexts.names().map((name) => shownContext(contexts.get(name), inUse));
    await this.outputFor(flags).list(
      { data },
      CONTEXT_LIST,
      "No contexts yet. Add one: evreg context add NAME --url URL --token-file FILE",
    );
    if (inUse !== undefined && !contexts.has(inUse)) {
      note(
        `The context in use, ${escapeControl(inUse)}, is not there. Use another: evreg context use NAME, or evreg context use --none.`,
      );
    }
    return EXIT.done;
  }
}
