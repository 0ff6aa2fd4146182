import { Flags } from "@oclif/core";
import { TargetCommand } from "../../cli/base-command.ts";
import { definedOnly, hasFilters } from "../../cli/flags.ts";
import { nextCommand } from "../../cli/target/next-command.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { ACTION_LIST } from "../../resources/actions.ts";

export default class ActionsList extends TargetCommand {
  static override aliases = ["actions"];
  static override usage = "<%= command.id %> [--application NAME]";
  static override summary = "List the actions: what can be published, and by which schema.";
  static override examples = [
    { description: "All of them", command: "<%= config.bin %> actions" },
    { description: "Those of one application", command: "<%= config.bin %> actions list --application shop" },
    { description: "Their names only", command: "<%= config.bin %> actions --json | jq -r '.data[].action'" },
  ];
  static override flags = {
    application: Flags.string({ summary: "Only those this application owns.", helpValue: "NAME" }),
  };

  async run(): Promise<number> {
    const { flags } = await this.parse(ActionsList);
    const query = definedOnly({ application: flags.application });
    const answer = await this.withTarget(flags, (evreg) => evreg.actions.list(query));
    await this.outputFor(flags).list(
      answer,
      ACTION_LIST,
      hasFilters(query)
        ? "No action matches."
        : `No actions yet, or none that this token may read. Create one: ${nextCommand("actions create NAME --application APP --schema FILE")}`,
    );
    return EXIT.done;
  }
}
