import { Flags } from "@oclif/core";
import { EvregCommand } from "../../cli/base-command.ts";
import { ACTION_RECORD } from "../../cli/columns.ts";
import { EXIT } from "../../cli/exit-code.ts";
import { given, textArg } from "../../cli/flags.ts";
import { successorFlag } from "../../cli/successor-flag.ts";

export default class ActionsDeprecate extends EvregCommand {
  static override summary = "Tell publishers of an action to move on.";
  static override description =
    "Publishing goes on; each answer carries the header Deprecation and names the successor, and evreg publish tells it on stderr.";
  static override examples = [
    "<%= config.bin %> actions deprecate order.created --successor order.created.v2",
    { description: "After all not", command: "<%= config.bin %> actions deprecate order.created --undo" },
  ];
  static override args = { name: textArg("Name of the action.") };
  static override flags = {
    successor: successorFlag,
    undo: Flags.boolean({ summary: "Not deprecated any more." }),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ActionsDeprecate);
    const change = { deprecated: !flags.undo, ...given({ successor: flags.successor }) };
    const answer = await this.withEvreg(flags, (evreg) => evreg.actions.update(args.name, change));
    await this.outputFor(flags).record(answer, ACTION_RECORD);
    return EXIT.done;
  }
}
