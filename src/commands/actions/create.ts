import { Flags } from "@oclif/core";
import { TargetCommand } from "../../cli/base-command.ts";
import { againstFlag, definedOnly, modeFlag, textArg } from "../../cli/flags.ts";
import { readSchema } from "../../cli/schema-file.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { ACTION_CHANGED } from "../../resources/actions.ts";

export default class ActionsCreate extends TargetCommand {
  static override summary = "Create an action: a name, its owner and the JSON Schema of its payloads.";
  static override description =
    "Names that begin with evreg. are kept for events of evreg about itself, which can be subscribed to like any other.";
  static override usage =
    "actions create NAME --application NAME --schema FILE|- [--mode MODE] [--against last|all]";
  static override examples = [
    "<%= config.bin %> actions create order.created --application shop --schema order.json",
    {
      description: "A schema typed in place",
      command: `echo '{"type":"object","required":["id"]}' | <%= config.bin %> actions create order.created --application shop --schema -`,
    },
  ];
  static override args = { name: textArg("Name, in segments joined by dots: order.created") };
  static override flags = {
    application: Flags.string({
      summary: "The application that owns it.",
      helpValue: "NAME",
      required: true,
    }),
    schema: Flags.string({
      summary: "File with the JSON Schema (schemata in the API), as JSON or YAML; - is stdin.",
      aliases: ["schemata"],
      helpValue: "FILE",
      required: true,
    }),
    mode: modeFlag("Whom later changes of the schema must not break (default full)."),
    against: againstFlag(),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ActionsCreate);
    const schemata = await readSchema(flags.schema);
    const { application, mode: compatibility, against: compatibility_against } = flags;
    const rule = definedOnly({ compatibility, compatibility_against });
    const answer = await this.withTarget(
      flags,
      (evreg) => evreg.actions.create({ action: args.name, application, schemata, ...rule }),
      { creates: "folder" },
    );
    const output = this.outputFor(flags);
    await output.record(answer, ACTION_CHANGED);
    this.printWarnings(answer.meta, output);
    return EXIT.done;
  }
}
