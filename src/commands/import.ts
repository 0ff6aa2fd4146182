import { Args, Flags } from "@oclif/core";
import { BaseCommand } from "../cli/base-command.ts";
import { EXIT, usageError } from "../cli/usage-errors.ts";

export default class Import extends BaseCommand {
  static override summary = "Make registry files of what an OpenAPI or AsyncAPI document declares.";
  static override description = `Reads the webhooks of an OpenAPI 3.1 document or the messages of an AsyncAPI 3 one, as YAML or JSON, and writes their actions as files that evreg apply reads. Nothing is applied: look at them first.

Each payload's schema becomes one of Draft 7 that accepts the same, with what it refers to in the document. What is changed or checks nothing is told with its line. A message whose schema would not mean the same is left out, and the exit code is 7; --loosen takes those as well that then accept more.`;
  static override usage =
    "import FILE|- [--application NAME] [--prefix NAME] [--loosen] [--output-file FILE | --output-dir DIR [--force]] [--json]";
  static override examples = [
    { description: "To look at", command: "<%= config.bin %> import openapi.yaml --application shop" },
    {
      description: "Into the folder of the registry, and what that would change",
      command:
        "<%= config.bin %> import openapi.yaml --application shop --output-dir registry && <%= config.bin %> apply -f registry --dry-run",
    },
    {
      description: "With names such as github.issues-opened",
      command:
        "<%= config.bin %> import api.github.com.json --application github --prefix github -o github.yaml",
    },
  ];
  static override args = {
    file: Args.string({ description: "The document; - for stdin.", required: true, ignoreStdin: true }),
  };
  static override flags = {
    "output-file": Flags.string({
      char: "o",
      summary: "Write into this file.",
      helpValue: "FILE",
      exclusive: ["output-dir"],
    }),
    application: Flags.string({
      summary: "The application that owns the actions (default: the document's title).",
      helpValue: "NAME",
    }),
    prefix: Flags.string({
      summary: "What each action's name begins with, before a dot.",
      helpValue: "NAME",
    }),
    loosen: Flags.boolean({
      summary: "Leave out what Draft 7 cannot say, where that accepts more than the document.",
    }),
    "output-dir": Flags.string({ summary: "Write a file into this folder.", helpValue: "DIR" }),
    force: Flags.boolean({
      summary: "Replace a file in the folder that holds something else.",
      dependsOn: ["output-dir"],
    }),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(Import);
    const { format } = this.outputFor(flags);
    if (format === "jsonl") throw usageError("Registry files are one document: YAML, or JSON with --json.");
    const { application, prefix, loosen } = flags;
    const { importDocument } = await import("../cli/registry/import.ts");
    const isWhole = await importDocument(args.file, {
      application,
      prefix,
      loosen,
      format: format === "json" ? "json" : "yaml",
      target: flags,
    });
    return isWhole ? EXIT.done : EXIT.someFailed;
  }
}
