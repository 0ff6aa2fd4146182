import { Flags } from "@oclif/core";
import { EvregCommand } from "../../cli/base-command.ts";
import { ACTION_RECORD } from "../../cli/columns.ts";
import { EXIT } from "../../cli/exit-code.ts";
import { given, textArg } from "../../cli/flags.ts";
import { successorFlag } from "../../cli/successor-flag.ts";

export default class ActionsRetire extends EvregCommand {
  static override summary = "Take no more events of an action.";
  static override description =
    "Publishing is refused with 410 and the name of the successor; only what repeats the idempotency key of an event from before is answered with that event. Reading goes on, and so do its deliveries, replays and subscriptions.";
  static override examples = [
    "<%= config.bin %> actions retire order.created --successor order.created.v2",
    { description: "After all not", command: "<%= config.bin %> actions retire order.created --undo" },
  ];
  static override args = { name: textArg("Name of the action.") };
  static override flags = {
    successor: successorFlag,
    undo: Flags.boolean({ summary: "Take events again." }),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ActionsRetire);
    const change = { retired: !flags.undo, ...given({ successor: flags.successor }) };
    const answer = await this.withEvreg(flags, (evreg) => evreg.actions.update(args.name, change));
    await this.outputFor(flags).record(answer, ACTION_RECORD);
    return EXIT.done;
  }
}
