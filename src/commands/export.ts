import { Flags } from "@oclif/core";
import { TargetCommand } from "../cli/base-command.ts";
import { EXIT, usageError } from "../cli/usage-errors.ts";

export default class Export extends TargetCommand {
  static override summary = "Write the actions and subscriptions as files that evreg apply reads.";
  static override description =
    "As YAML, or as JSON with --json. What is as for a new record is left out, and so are secrets, numbers and times: the same registry always gives the same text. Applying it changes nothing.";
  static override usage =
    "export [--application NAME] [--output-file FILE | --output-dir DIR [--force]] [--json]";
  static override examples = [
    { description: "To look at", command: "<%= config.bin %> export" },
    {
      description: "Into a folder, a file for each application",
      command: "<%= config.bin %> export --output-dir registry",
    },
    {
      description: "One application, into a file",
      command: "<%= config.bin %> export --application shop -o shop.yaml",
    },
  ];
  static override flags = {
    "output-file": Flags.string({
      char: "o",
      summary: "Write into this file.",
      helpValue: "FILE",
      exclusive: ["output-dir"],
    }),
    application: Flags.string({
      summary: "Only the actions this application owns, and its subscriptions.",
      helpValue: "NAME",
    }),
    "output-dir": Flags.string({
      summary: "Write into this folder, a file for each application.",
      helpValue: "DIR",
    }),
    force: Flags.boolean({
      summary: "Replace files in the folder that hold something else.",
      dependsOn: ["output-dir"],
    }),
  };

  async run(): Promise<number> {
    const { flags } = await this.parse(Export);
    const { format } = this.outputFor(flags);
    if (format === "jsonl") throw usageError("An export is one document: YAML, or JSON with --json.");
    const as = format === "json" ? "json" : "yaml";
    const [{ groupByApplication: byApplication, exported, registryOf }, { writeRegistry }] =
      await Promise.all([import("../cli/registry/export.ts"), import("../cli/registry/export.ts")]);
    const registry = await this.withTarget(flags, (evreg) => registryOf(evreg, flags.application));
    await writeRegistry(exported(registry), byApplication(registry), as, flags);
    return EXIT.done;
  }
}
