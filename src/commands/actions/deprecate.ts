import { EndActionCommand, endFlags } from "../../cli/resource-command.ts";

export default class ActionsDeprecate extends EndActionCommand {
  static override usage = "actions deprecate NAME [--successor NAME | --undo]";
  static override summary = "Tell publishers of an action to move on.";
  static override description =
    "Publishing goes on; each answer carries the header Deprecation and names the successor, and evreg publish tells it on stderr.";
  static override examples = [
    "<%= config.bin %> actions deprecate order.created --successor order.created.v2",
    { description: "After all not", command: "<%= config.bin %> actions deprecate order.created --undo" },
  ];
  static override args = EndActionCommand.args;
  static override flags = endFlags("Not deprecated any more.");

  protected readonly setting = "deprecated";
}
