import { EndActionCommand, endFlags } from "../../cli/resource-command.ts";

export default class ActionsRetire extends EndActionCommand {
  static override usage = "actions retire NAME [--successor NAME | --undo]";
  static override summary = "Take no more events of an action.";
  static override description =
    "Publishing is refused with 410 and the name of the successor; only what repeats the idempotency key of an event from before is answered with that event. Reading goes on, and so do its deliveries, replays and subscriptions.";
  static override examples = [
    "<%= config.bin %> actions retire order.created --successor order.created.v2",
    { description: "After all not", command: "<%= config.bin %> actions retire order.created --undo" },
  ];
  static override args = EndActionCommand.args;
  static override flags = endFlags("Take events again.");

  protected readonly setting = "retired";
}
