import { Args, Flags } from "@oclif/core";
import { actionsNamed } from "../../cli/actions-named.ts";
import { EvregCommand } from "../../cli/base-command.ts";
import { EXIT } from "../../cli/exit-code.ts";
import { note, writeOut } from "../../cli/output.ts";
import { typesFile } from "../../cli/types-file.ts";
import { writeFile } from "../../cli/write-file.ts";

export default class ActionsTypes extends EvregCommand {
  static override summary =
    "Print the types of payloads and deliveries, for code that publishes or receives.";
  static override description = `One file with a type for each payload, and Delivery: what a handler receives, told apart by its action. The same schemas give the same file, so that it can be kept beside the code and compared.

A type is never narrower than its schema, save that a schema without "type" is taken to mean what its keywords are about. Bounds, lengths, patterns, formats and "not" have no counterpart in a type.`;
  static override usage = "actions types [NAME ...] [--lang typescript] [--out FILE]";
  static override examples = [
    { description: "Of all actions", command: "<%= config.bin %> actions types --out src/events.ts" },
    {
      description: "Of two",
      command: "<%= config.bin %> actions types order.created order.paid --lang typescript",
    },
    {
      description: "In CI: fail when the schemas have changed",
      command: "<%= config.bin %> actions types | diff src/events.ts -",
    },
  ];
  static override args = {
    name: Args.string({
      description: "Names of actions; all when none is given.",
      multiple: true,
      ignoreStdin: true,
    }),
  };
  static override flags = {
    lang: Flags.option({
      summary: "The language (default typescript).",
      options: ["typescript"] as const,
      helpValue: "typescript",
    })(),
    out: Flags.string({
      summary: "Write to this file instead of stdout.",
      helpValue: "FILE",
      exclusive: ["json", "output"],
    }),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ActionsTypes);
    const actions = await this.withEvreg(flags, (evreg) => actionsNamed(evreg, args.name ?? []));
    if (actions.length === 0) note("No actions yet, or none that this token may read: no type to declare.");
    const source = typesFile(actions);
    const output = this.outputFor(flags);
    if (flags.out !== undefined) {
      await writeFile(flags.out, source);
      note(`Wrote the types of ${actions.length === 1 ? "1 action" : `${actions.length} actions`}.`);
    } else if (output.format === "table") await writeOut(source);
    else await output.document({ data: source });
    return EXIT.done;
  }
}
