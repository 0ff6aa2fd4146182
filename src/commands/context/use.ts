import { Flags } from "@oclif/core";
import { BaseCommand } from "../../cli/base-command.ts";
import { optionalArg } from "../../cli/flags.ts";
import { note } from "../../cli/io/output.ts";
import { EXIT, usageError } from "../../cli/usage-errors.ts";
import { Contexts } from "../../config/contexts.ts";
import { CONTEXT_RECORD, shownContext } from "../../resources/contexts.ts";

export default class ContextUse extends BaseCommand {
  static override usage = "context use NAME | --none";
  static override summary = "Choose the context that commands act on from now on.";
  static override examples = [
    "<%= config.bin %> context use prod",
    {
      description: "Back to the data folder",
      command: "<%= config.bin %> context use --none",
    },
    {
      description: "For this shell only",
      command: "EVREG_CONTEXT=prod; export EVREG_CONTEXT; <%= config.bin %> whoami",
    },
  ];
  static override args = { name: optionalArg("Name of the context.") };
  static override flags = {
    none: Flags.boolean({ summary: "None: commands act on the data folder again." }),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ContextUse);
    const contexts = new Contexts(this.config.configDir);
    const both = args.name !== undefined && flags.none;
    const neither = args.name === undefined && !flags.none;
    if (both || neither) throw usageError("Name the context to use, or give --none.");
    const output = this.outputFor(flags);
    if (args.name === undefined) {
      contexts.useNone();
      if (output.format === "table") note("No context is in use.");
      else await output.document({ data: null });
      return EXIT.done;
    }
    contexts.use(args.name);
    await output.record({ data: shownContext(contexts.get(args.name), args.name) }, CONTEXT_RECORD);
    return EXIT.done;
  }
}
