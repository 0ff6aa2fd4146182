import { Args, Flags } from "@oclif/core";
import { choiceFlag, textFlag } from "../cli/flags.ts";
import { BaseCommand, examples, TargetCommand } from "../cli/base-command.ts";
import { type Output, writeOut } from "../cli/io/output.ts";
import type { ExportFormat } from "../cli/registry/export.ts";
import { EXIT, usageError } from "../cli/usage-errors.ts";

export class Apply extends TargetCommand {
  static override summary = "Make actions and subscriptions as files declare them.";
  static override description = `The files hold lists of actions and subscriptions, as YAML or JSON; evreg export writes what there is in that form. First all of them are checked, then the plan is shown: + is created, ~ changed, - deleted, ! a schema that would break someone. With a ! nothing is done, and the exit code is 5. What is as declared is left alone, so the same command again does nothing.

What a file leaves out of a record gets the default of a new one. Only active of a subscription, and deprecated, retired and successor of an action stay as they are. Secrets are never in files: that of a created subscription is shown once, on a terminal or with --json; later, subscriptions rotate-secret makes another.`;
  static override examples = examples({
    "What would change": "evreg apply -f registry/ --dry-run",
    "Change it, from a script": "evreg apply -f registry/ --json > applied.json",
    "And delete the subscriptions that no file declares any more": "evreg apply -f registry/ --prune",
    "From one server to another":
      "evreg export --url https://staging.example.com | evreg apply -f - --dry-run",
  });
  static override flags = {
    file: Flags.string({
      char: "f",
      summary: "A file, a folder of them, or - for stdin; may be repeated.",
      helpValue: "FILE|DIR|-",
      required: true,
      multiple: true,
      multipleNonGreedy: true,
    }),
    "dry-run": Flags.boolean({ summary: "Show the plan, and do nothing.", default: false }),
    prune: Flags.boolean({
      summary:
        "Delete the subscriptions that no file declares, of the applications that the files name. Asks first.",
    }),
    yes: Flags.boolean({ summary: "Delete without asking.", dependsOn: ["prune"] }),
    compatibility: choiceFlag("none: apply schemas that break someone as well (scope admin).", ["none"]),
  };

  async run(): Promise<number> {
    const { flags } = await this.parse(Apply);
    // YAML and the schema compiler take their time to load; help and mistakes need neither.
    const [{ loadDeclarations }, { apply }] = await Promise.all([
      import("../cli/registry/declarations.ts"),
      import("../cli/registry/apply.ts"),
    ]);
    const declared = await loadDeclarations(flags.file);
    const { "dry-run": dryRun, prune, yes } = flags;
    const options = {
      dryRun,
      prune,
      yes,
      force: flags.compatibility === "none",
      output: this.outputFor(flags),
    };
    return this.withTarget(flags, (evreg) => apply(evreg, declared, options), {
      creates: dryRun ? "data" : "folder",
    });
  }
}

function formatOf({ format }: Output): ExportFormat {
  if (format === "jsonl") throw usageError("A registry file is one document: YAML, or JSON with --json.");
  return format === "json" ? "json" : "yaml";
}

export class Export extends TargetCommand {
  static override summary = "Write actions and subscriptions as a file that evreg apply can read.";
  static override description =
    "As YAML, or as JSON with --json. Default values are left out, and so are secrets, numbers and times: the same registry always gives the same text. Applying it changes nothing.";
  static override examples = examples({
    "To look at": "evreg export",
    "One application, into a file": "evreg export --application shop > shop.yaml",
  });
  static override flags = {
    application: Flags.string({
      summary: "Only the actions this application owns, and its subscriptions.",
      helpValue: "NAME",
    }),
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(Export);
    const format = formatOf(this.outputFor(flags));
    const { application } = flags;
    const { exported, exportText, registryOf } = await import("../cli/registry/export.ts");
    const registry = await this.withTarget(flags, (evreg) => registryOf(evreg, application));
    await writeOut(exportText(exported(registry), format));
  }
}

export class Import extends BaseCommand {
  static override summary = "Make a registry file of what an OpenAPI or AsyncAPI document declares.";
  static override description = `Reads the webhooks of an OpenAPI 3.1 document or the messages of an AsyncAPI 3 one, as YAML or JSON, and writes their actions as a file that evreg apply reads. Nothing is applied: look at it first.

Each payload's schema becomes one of Draft 7 that accepts the same, with what it refers to in the document. stderr says with its line what is changed or checks nothing. A message whose schema would not mean the same is left out, and the exit code is 7.`;
  static override examples = examples({
    "To look at": "evreg import openapi.yaml --application shop",
    "Into the folder of the registry, and what that would change":
      "evreg import openapi.yaml --application shop > registry/shop.yaml; evreg apply -f registry --dry-run",
    "With names such as github.issues-opened":
      "evreg import api.github.com.json --application github --prefix github > github.yaml",
  });
  static override args = {
    file: Args.string({ description: "The document; - for stdin.", required: true, ignoreStdin: true }),
  };
  static override flags = {
    application: textFlag("The application that owns the actions (default: the document's title).", "NAME"),
    prefix: textFlag("What each action's name begins with, before a dot.", "NAME"),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(Import);
    const { application, prefix } = flags;
    const format = formatOf(this.outputFor(flags));
    const { importDocument } = await import("../cli/registry/import.ts");
    const isWhole = await importDocument(args.file, { application, prefix, format });
    return isWhole ? EXIT.done : EXIT.someFailed;
  }
}
