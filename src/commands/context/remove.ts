import { BaseCommand } from "../../cli/base-command.ts";
import { textArg } from "../../cli/flags.ts";
import { note } from "../../cli/io/output.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { Contexts } from "../../config/contexts.ts";
import { REMOVED_CONTEXT, shownContext } from "../../resources/contexts.ts";

export default class ContextRemove extends BaseCommand {
  static override summary = "Forget a context, with its token.";
  static override description =
    "The token itself stays valid; evreg tokens revoke ends it. When the context was in use, none is from then on.";
  static override examples = ["<%= config.bin %> context remove staging"];
  static override args = { name: textArg("Name of the context.") };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ContextRemove);
    const contexts = new Contexts(this.config.configDir);
    const data = shownContext(contexts.get(args.name), contexts.inUse());
    contexts.remove(args.name);
    const output = this.outputFor(flags);
    await output.record({ data: { ...data, in_use: false } }, REMOVED_CONTEXT);
    if (output.format === "table") {
      const removed = data.has_token ? "Removed, with its token" : "Removed";
      note(data.in_use ? `${removed}; no context is in use now.` : `${removed}.`);
    }
    return EXIT.done;
  }
}
