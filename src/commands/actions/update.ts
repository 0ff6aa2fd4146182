import { Flags } from "@oclif/core";
import { isDeepStrictEqual } from "node:util";
import { TargetCommand } from "../../cli/base-command.ts";
import { againstFlag, definedOnly, modeFlag, numberFlag, textArg } from "../../cli/flags.ts";
import { note } from "../../cli/io/output.ts";
import { readSchema } from "../../cli/schema-file.ts";
import { EXIT, usageError } from "../../cli/usage-errors.ts";
import { ACTION_CHANGED } from "../../resources/actions.ts";

export default class ActionsUpdate extends TargetCommand {
  static override summary = "Apply a changed schema to an action, or change how its schema may change.";
  static override description =
    "A schema that breaks nobody whom the action's mode protects, such as one with a new optional property, becomes the next revision. One that would break someone is refused (exit code 5): each break is told with its place in the schema, a payload that shows it and what could be done instead. Create a new action for it, such as order.created.v2. The mode is full (who publishes and who reads), producer, consumer or none.";
  static override usage = [
    "actions update NAME --schema FILE|- [--compatibility none]",
    "actions update NAME --from-revision NUMBER [--compatibility none]",
    "actions update NAME [--mode MODE] [--against last|all]",
  ];
  static override examples = [
    "<%= config.bin %> actions update order.created --schema order.json",
    {
      description: "Go back to the schema of revision 2, as a new revision",
      command: "<%= config.bin %> actions update order.created --from-revision 2",
    },
    {
      description: "Apply a breaking change all the same, this once (scope admin)",
      command: "<%= config.bin %> actions update order.created --schema order.json --compatibility none",
    },
    {
      description: "From now on compare with every schema it has had",
      command: "<%= config.bin %> actions update order.created --against all",
    },
  ];
  static override args = { name: textArg("Name of the action.") };
  static override flags = {
    schema: Flags.string({
      summary: "File with the JSON Schema (schemata in the API), as JSON or YAML; - is stdin.",
      aliases: ["schemata"],
      helpValue: "FILE",
      exclusive: ["from-revision"],
    }),
    "from-revision": numberFlag("Take the schema of this revision."),
    mode: modeFlag("Whom changes must not break from now on; protecting less needs the scope admin."),
    against: againstFlag(),
    compatibility: Flags.option({
      summary: "none: apply this schema even if it breaks someone.",
      options: ["none"] as const,
      helpValue: "none",
    })(),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ActionsUpdate);
    const { schema, mode: compatibility, against: compatibility_against } = flags;
    const number = flags["from-revision"];
    const settings = definedOnly({ compatibility, compatibility_against });
    if (schema === undefined && number === undefined) {
      if (Object.keys(settings).length === 0) {
        throw usageError("Nothing to change: give --schema, --from-revision, --mode or --against.");
      }
      if (flags.compatibility !== undefined) {
        throw usageError(
          "--compatibility is for a schema: give --schema or --from-revision, or set --mode for good.",
        );
      }
    }
    const read = schema === undefined ? undefined : await readSchema(schema);
    const options = definedOnly({ compatibility: flags.compatibility });
    const { answer, before } = await this.withTarget(flags, async ({ actions }) => {
      // Whoever may write need not be allowed to read.
      const found = await actions.get(args.name).catch(() => undefined);
      const kept = number === undefined ? undefined : (await actions.revision(args.name, number)).data;
      const schemata = read ?? kept?.schemata;
      const updated = await actions.update(args.name, { ...settings, ...definedOnly({ schemata }) }, options);
      return { answer: updated, before: found?.data };
    });
    const output = this.outputFor(flags);
    await output.record(answer, ACTION_CHANGED);
    this.printWarnings(answer.meta, output);
    if (isDeepStrictEqual(before, answer.data)) {
      note(
        `Nothing changed: ${answer.data.action} was like this already (revision ${answer.data.revision}).`,
      );
    }
    return EXIT.done;
  }
}
