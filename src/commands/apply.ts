import { Flags } from "@oclif/core";
import { TargetCommand } from "../cli/base-command.ts";

export default class Apply extends TargetCommand {
  static override summary = "Make actions and subscriptions as files declare them.";
  static override description = `The files hold lists of actions and subscriptions, as YAML or JSON; evreg export writes what there is in that form. First all of them are checked, then the plan is shown: + is created, ~ changed, - deleted, ! a schema that would break someone. With a ! nothing is done, and the exit code is 5. What is as declared is left alone, so the same command again does nothing.

What a file leaves out of a record is as for a new one, but for active of a subscription and deprecated, retired and successor of an action, which stay as they are. Secrets are never in files: one of a created subscription is told once, on the terminal or into --secrets-file.`;
  static override usage =
    "apply --file FILE|DIR|- [--dry-run [--exit-code]] [--prune [--yes]] [--secrets-file FILE|-] [--bearer-token-dir DIR] [--compatibility none] [--keep-going]";
  static override examples = [
    { description: "What would change", command: "<%= config.bin %> apply -f registry/ --dry-run" },
    {
      description: "Change it, from a script",
      command: "<%= config.bin %> apply -f registry/ --secrets-file secrets.ndjson",
    },
    {
      description: "And delete the subscriptions that no file declares any more",
      command: "<%= config.bin %> apply -f registry/ --prune",
    },
    {
      description: "From one server to another",
      command:
        "<%= config.bin %> export --url https://staging.example.com | <%= config.bin %> apply -f - --dry-run",
    },
  ];
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
    "exit-code": Flags.boolean({
      summary: "End with exit code 7 where the plan is not empty.",
      dependsOn: ["dry-run"],
    }),
    prune: Flags.boolean({
      summary:
        "Delete the subscriptions that no file declares, of the applications that the files name. Asks before.",
    }),
    yes: Flags.boolean({ summary: "Delete without asking.", dependsOn: ["prune"] }),
    "secrets-file": Flags.string({
      summary:
        "Add the secret of each created subscription to this file, one JSON record a line (mode 0600), or - to the output.",
      helpValue: "FILE|-",
    }),
    "bearer-token-dir": Flags.string({
      summary: "The folder that each bearer_token_file lies in, instead of that of the files.",
      helpValue: "DIR",
    }),
    compatibility: Flags.option({
      summary: "none: apply schemas that break someone as well (scope admin).",
      options: ["none"] as const,
      helpValue: "none",
    })(),
    "keep-going": Flags.boolean({
      summary: "Do whatever can be done past a break or a failure, instead of stopping there.",
    }),
  };

  async run(): Promise<number> {
    const { flags } = await this.parse(Apply);
    // YAML and the schema compiler take their time to load; help and mistakes need neither.
    const [{ loadDeclarations }, { apply }] = await Promise.all([
      import("../cli/registry/declarations.ts"),
      import("../cli/registry/apply.ts"),
    ]);
    const declared = await loadDeclarations(flags.file, flags["bearer-token-dir"]);
    const { "dry-run": dryRun, "exit-code": exitCode, prune, yes } = flags;
    const options = {
      dryRun,
      exitCode,
      prune,
      yes,
      force: flags.compatibility === "none",
      keepGoing: flags["keep-going"],
      secretsFile: flags["secrets-file"],
      output: this.outputFor(flags),
    };
    return this.withTarget(flags, (evreg) => apply(evreg, declared, options), {
      creates: dryRun ? "data" : "folder",
      announceAtOnce: true,
    });
  }
}
