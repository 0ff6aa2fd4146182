import { Flags } from "@oclif/core";
import { EvregCommand } from "../../cli/base-command.ts";
import { EXIT } from "../../cli/exit-code.ts";
import { given, modeFlag, numberFlag, textArg } from "../../cli/flags.ts";
import { pathInWorkspace } from "../../cli/github-annotation.ts";
import { writeOut } from "../../cli/output.ts";
import { readSchemaSource } from "../../cli/schema-file.ts";
import { faultAnnotation, verdictAnnotations, verdictText } from "../../cli/verdict-text.ts";
import { EvregError } from "../../domain/error.ts";

export default class ActionsCheck extends EvregCommand {
  static override summary = "Tell what a schema would break of an action, and change nothing.";
  static override description =
    "The exit code is 0 when an update with the schema would be applied, and 5 when it would be refused or one of the events of --replay does not conform. With --mode the verdict is for that mode, while an update is held to the action's own. --format github writes annotations that a GitHub workflow shows beside the lines of the file, named from the root of the repository, and a notice where all is well.";
  static override usage =
    "actions check NAME --schema FILE|- [--mode MODE] [--replay NUMBER] [--format text|json|github]";
  static override examples = [
    "<%= config.bin %> actions check order.created --schema order.json",
    {
      description: "With the last 1,000 events held to it",
      command: "<%= config.bin %> actions check order.created --schema order.json --replay 1000",
    },
    {
      description: "In a GitHub workflow",
      command: "<%= config.bin %> actions check order.created --schema schemas/order.yaml --format github",
    },
  ];
  static override args = { name: textArg("Name of the action.") };
  static override flags = {
    schema: Flags.string({
      summary: "File with the JSON Schema (schemata in the API), as JSON or YAML; - is stdin.",
      aliases: ["schemata"],
      helpValue: "FILE",
      required: true,
    }),
    mode: modeFlag("Whom it must not break, instead of the action's own mode."),
    replay: numberFlag("Hold so many of the last events to it, up to 10,000."),
    format: Flags.option({
      summary: "text for people, json as the API answers it, or github for a workflow's log.",
      options: ["text", "json", "github"] as const,
      helpValue: "text|json|github",
      exclusive: ["json", "output"],
    })(),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ActionsCheck);
    const { schemata, lineOf } = await this.annotating(flags, () => readSchemaSource(flags.schema));
    const candidate = { schemata, ...given({ mode: flags.mode, replay: flags.replay }) };
    const { mode: asked } = flags;
    const { answer, own } = await this.withEvreg(flags, async ({ actions }) => ({
      answer: await this.annotating(flags, () => actions.check(args.name, candidate), lineOf),
      own: asked === undefined ? undefined : (await actions.get(args.name)).data.compatibility,
    }));
    const verdict = answer.data;
    const output = this.outputFor({ ...flags, json: flags.json || flags.format === "json" });
    if (output.format === "json") await output.document(answer);
    else if (output.format === "jsonl") await output.lines([verdict]);
    else {
      const file = shownFile(flags);
      const modes = asked === undefined || own === undefined || own === asked ? undefined : { asked, own };
      const judged = { action: args.name, file, lineOf: await lineOf(), ...given({ modes }) };
      const write = flags.format === "github" ? verdictAnnotations : verdictText;
      await writeOut(write(verdict, judged));
    }
    return verdict.compatible && (verdict.replay?.failed ?? 0) === 0 ? EXIT.done : EXIT.breaking;
  }

  /** A workflow shows what it reads in annotations, so what is no schema is one too. */
  private async annotating<T>(
    { format, schema }: { readonly format?: string | undefined; readonly schema: string },
    act: () => Promise<T>,
    lineOf?: () => Promise<(pointer: string) => number>,
  ): Promise<T> {
    try {
      return await act();
    } catch (error) {
      if (format === "github" && error instanceof EvregError) {
        await writeOut(
          faultAnnotation(error, shownFile({ format, schema }), (await lineOf?.()) ?? (() => 1)),
        );
      }
      throw error;
    }
  }
}

/** The file as its reader knows it; `undefined` for stdin. */
function shownFile({
  format,
  schema,
}: {
  readonly format?: string | undefined;
  readonly schema: string;
}): string | undefined {
  if (schema === "-") return undefined;
  return format === "github" ? pathInWorkspace(schema, process.env["GITHUB_WORKSPACE"]) : schema;
}
