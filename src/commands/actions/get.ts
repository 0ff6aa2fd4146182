import { TargetCommand } from "../../cli/base-command.ts";
import { textArg } from "../../cli/flags.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { ACTION_RECORD } from "../../resources/actions.ts";

export default class ActionsGet extends TargetCommand {
  static override summary = "Show one action with its schema.";
  static override examples = [
    "<%= config.bin %> actions get order.created",
    {
      description: "Its schema into a file, to edit it",
      command: "<%= config.bin %> actions get order.created --json | jq .data.schemata > schema.json",
    },
  ];
  static override args = { name: textArg("Name of the action.") };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ActionsGet);
    const answer = await this.withTarget(flags, (evreg) => evreg.actions.get(args.name));
    await this.outputFor(flags).record(answer, ACTION_RECORD);
    return EXIT.done;
  }
}
