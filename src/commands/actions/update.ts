import { Flags } from "@oclif/core";
import { EvregCommand } from "../../cli/base-command.ts";
import { ACTION_RECORD } from "../../cli/columns.ts";
import { EXIT } from "../../cli/exit-code.ts";
import { given, textArg } from "../../cli/flags.ts";
import { readSchema } from "../../cli/schema-file.ts";

export default class ActionsUpdate extends EvregCommand {
  static override summary = "Apply a changed schema to an action.";
  static override description =
    "A change that breaks nobody, such as a new optional property, becomes the next revision. One that would break those who publish or those who receive is refused (exit code 5): each break is told with its place in the schema, a payload that shows it and what could be done instead. Create a new action for it, such as order.created.v2.";
  static override usage = "actions update NAME --schema FILE|- [--compatibility none]";
  static override examples = [
    "<%= config.bin %> actions update order.created --schema order.json",
    {
      description: "Apply a breaking change all the same (scope admin)",
      command: "<%= config.bin %> actions update order.created --schema order.json --compatibility none",
    },
  ];
  static override args = { name: textArg("Name of the action.") };
  static override flags = {
    schema: Flags.string({
      summary: "File with the JSON Schema, as JSON or YAML; - is stdin.",
      helpValue: "FILE",
      required: true,
    }),
    compatibility: Flags.option({
      summary: "none: apply it even if it breaks somebody.",
      options: ["none"] as const,
    })(),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ActionsUpdate);
    const schemata = await readSchema(flags.schema);
    const answer = await this.withEvreg(flags, (evreg) =>
      evreg.actions.update(args.name, { schemata }, given({ compatibility: flags.compatibility })),
    );
    const output = this.outputFor(flags);
    await output.record(answer, ACTION_RECORD);
    this.tellWarnings(answer.meta, output);
    return EXIT.done;
  }
}
