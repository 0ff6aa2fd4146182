import { relative, resolve, sep } from "node:path";
import { examples, TargetCommand } from "../cli/base-command.ts";
import { choiceFlag, definedOnly, modeFlag, numberFlag, schemaFlag, textArg } from "../cli/flags.ts";
import { writeOut } from "../cli/io/output.ts";
import { counted, escapeControl } from "../cli/io/text.ts";
import { interruption } from "../cli/io/interruption.ts";
import { payloadFrom } from "../cli/publish/publish-one.ts";
import { breakDetails, brokenRule } from "../cli/report-error.ts";
import { readSchemaSource } from "../cli/schema-file.ts";
import { EXIT } from "../cli/usage-errors.ts";
import type { CheckedEvents, CompatibilityMode, SchemaVerdict } from "../domain/action.ts";
import { EvregError } from "../domain/error.ts";

export class ActionsCheck extends TargetCommand {
  static override summary = "Check what a schema would break, without changing anything.";
  static override description =
    "The exit code is 0 when an update with the schema would be applied. It is 5 when the update would be refused, or when one of the events of --replay does not conform. With --mode the verdict is for that mode; an update uses the mode that is given with it, or else the action's own. --format github writes annotations: a GitHub workflow shows them beside the lines of the file. Where nothing is wrong, it writes a notice.";
  static override usage =
    "actions check NAME --schema FILE|- [--mode MODE] [--replay NUMBER] [--format text|json|github]";
  static override examples = examples("evreg actions check order.created --schema order.json", {
    "Check the last 1,000 events with it as well":
      "evreg actions check order.created --schema order.json --replay 1000",
    "In a GitHub workflow": "evreg actions check order.created --schema schemas/order.yaml --format github",
  });
  static override args = { name: textArg("Name of the action.") };
  static override flags = {
    schema: schemaFlag({ required: true }),
    mode: modeFlag("Whom it must not break, instead of the action's own mode."),
    replay: numberFlag("Check so many of the last events with it, up to 10,000."),
    format: choiceFlag(
      "text for people, json as the API answers it, or github for a workflow's log.",
      ["text", "json", "github"],
      { exclusive: ["json", "output"] },
    ),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ActionsCheck);
    const { schema, mode, format } = flags;
    const isGithub = format === "github";
    const path = schema === "-" ? undefined : schema;
    const file = path !== undefined && isGithub ? pathInWorkspace(path) : path;
    // A workflow shows annotations, so a schema that cannot be checked gets one too.
    const annotated = async <T>(
      act: () => Promise<T>,
      linesOf?: () => Promise<CheckedSchema["lineOf"]>,
    ): Promise<T> => {
      try {
        return await act();
      } catch (error) {
        if (isGithub && error instanceof EvregError)
          await writeOut(errorAnnotation(error, file, (await linesOf?.()) ?? (() => 1)));
        throw error;
      }
    };
    const { schemata, lineOf } = await annotated(() => readSchemaSource(schema));
    const candidate = { schemata, ...definedOnly({ mode, replay: flags.replay }) };
    const answer = await this.withTarget(flags, ({ actions }) =>
      annotated(() => actions.check(args.name, candidate), lineOf),
    );
    const verdict = answer.data;
    const output = this.outputFor({ ...flags, json: flags.json || format === "json" });
    if (output.format === "json") await output.document(answer);
    else if (output.format === "jsonl") await output.lines([verdict]);
    else {
      const checked = { action: args.name, file, lineOf: await lineOf(), ...definedOnly({ mode }) };
      const write = isGithub ? verdictAnnotations : verdictText;
      await writeOut(write(verdict, checked));
    }
    return verdict.compatible && (verdict.replay?.failed ?? 0) === 0 ? EXIT.done : EXIT.breaking;
  }
}

export class ActionsValidate extends TargetCommand {
  static override summary = "Check a payload against an action's schema, without publishing it.";
  static override description =
    "It tells what publishing the payload would find, and stores nothing. The exit code is 1 when the payload breaks a rule of the schema, and when the action is retired. It takes a token that may read the action, or publish to it.";
  static override usage = "actions validate NAME FILE|-|PAYLOAD";
  static override examples = examples("evreg actions validate order.created order-7.json", {
    "A payload on the command line": `evreg actions validate order.created '{"id": 7}'`,
    "From another program": "make-order | evreg actions validate order.created -",
  });
  static override args = {
    name: textArg("Name of the action."),
    payload: textArg("The payload: a file, - for stdin, or a JSON object."),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ActionsValidate);
    const payload = await payloadFrom(args.payload);
    const answer = await this.withTarget(flags, ({ actions }) =>
      actions.validate(args.name, payload, interruption()),
    );
    const { action, revision, valid, errors } = answer.data;
    const output = this.outputFor(flags);
    if (output.format === "json") await output.document(answer);
    else if (output.format === "jsonl") await output.lines([answer.data]);
    else {
      const schema = escapeControl(`the schema of ${action} (revision ${revision})`);
      const verdict = valid
        ? `Valid: it conforms to ${schema}.`
        : `Not valid: it does not conform to ${schema}.`;
      await writeOut([...errors.map(brokenRule), verdict].map((line) => `${line}\n`).join(""));
    }
    return valid ? EXIT.done : EXIT.failed;
  }
}

/** The schema that was checked, and where its text is. */
interface CheckedSchema {
  readonly action: string;
  /** The file as its reader knows it; `undefined` for stdin. */
  readonly file: string | undefined;
  readonly lineOf: (pointer: string) => number;
  /** The mode that was asked for. An update is held to the action's own, and may be refused all the same. */
  readonly mode?: CompatibilityMode;
}

/** Failures in an annotation: a log shows few lines, and `--json` has all. */
const MAX_FAILURE_LINES = 10;
/** So many events are named that fail for the same reason. */
const MAX_EVENTS_NAMED = 5;

/** Says a verdict to a person: a line for each break, warning and failure, then the verdict. */
function verdictText(verdict: SchemaVerdict, checked: CheckedSchema): string {
  const place = (pointer: string) =>
    `${escapeControl(checked.file ?? "stdin")}:${checked.lineOf(pointer)}: ${escapeControl(pointer || "(root)")}`;
  const lines = [
    ...verdict.breaks.flatMap((broken) => [
      `${place(broken.pointer)}: ${escapeControl(broken.message)}`,
      ...breakDetails(broken).map((line) => `  ${line}`),
    ]),
    ...verdict.warnings.map(
      ({ pointer, message }) => `${place(pointer)}: Warning: ${escapeControl(message)}`,
    ),
    ...failureLines(verdict.replay),
    summary(verdict, checked),
  ];
  return lines.map((line) => `${line}\n`).join("");
}

/** Says a verdict in the log of a GitHub workflow. */
function verdictAnnotations(verdict: SchemaVerdict, checked: CheckedSchema): string {
  const { action, file, lineOf } = checked;
  const { breaks, warnings, replay } = verdict;
  const annotations: Annotation[] = [
    ...breaks.map(({ pointer, message, remedy }) => ({
      level: "error" as const,
      file,
      line: lineOf(pointer),
      title: `Breaks ${action}`,
      message: `${pointer || "(root)"}: ${message} ${remedy}`,
    })),
    ...warnings.map(({ pointer, message }) => {
      return { level: "warning" as const, file, line: lineOf(pointer), title: "Schema", message };
    }),
  ];
  const hasFailed = replay !== null && replay.failed > 0;
  if (hasFailed) {
    const lines = failureLines(replay);
    const more = lines.length - MAX_FAILURE_LINES;
    if (more > 0) lines.splice(MAX_FAILURE_LINES, more, `and ${more} lines more`);
    const message = [eventsSummary(replay), ...lines].join("\n");
    annotations.push({ level: "error", file, line: 1, title: `Events of ${action}`, message });
  } else if (breaks.length === 0) {
    // Else nothing would tell a check that passed from one that was not made.
    const message = summary(verdict, checked);
    annotations.push({ level: "notice", file, line: 1, title: `Checked ${action}`, message });
  }
  return annotations.map(annotationLine).join("");
}

/** Why a file could not be checked. */
function errorAnnotation(
  { message, details }: EvregError,
  file: string | undefined,
  lineOf: (pointer: string) => number,
): string {
  const { pointer, line = typeof pointer === "string" ? lineOf(pointer) : 1 } = details;
  return annotationLine({ level: "error", file, line: Number(line), title: "Not checked", message });
}

/** A line for each reason, with the newest of its events, and one for the events without a reason in the answer. */
function failureLines(replay: CheckedEvents | null): string[] {
  if (replay === null) return [];
  const byReason = Map.groupBy(replay.failures, ({ field, message }) =>
    escapeControl(`${field === "" ? "the payload" : field} ${message}`),
  );
  const lines = [...byReason].map(([reason, failures]) => {
    return `${eventsNamed(failures.map(({ event }) => event))}: ${reason}`;
  });
  const unlisted = replay.failed - replay.failures.length;
  if (unlisted > 0) lines.push(`${unlisted.toLocaleString("en")} older events fail too, not shown here.`);
  return lines;
}

function eventsNamed(events: readonly number[]): string {
  const [first, ...others] = events;
  if (others.length === 0) return `Event ${first}`;
  const more = events.length - MAX_EVENTS_NAMED;
  const shown = events.slice(0, MAX_EVENTS_NAMED).join(", ");
  return `Events ${shown}${more > 0 ? ` and ${more} more` : ""}`;
}

function summary({ compatible, breaks, replay }: SchemaVerdict, { action, mode }: CheckedSchema): string {
  const count = counted(breaks.length, "break");
  let verdict = compatible
    ? `Compatible: an update of ${action} with it would be applied.`
    : `Not compatible: ${count}; an update of ${action} with it would be refused.`;
  if (mode !== undefined) {
    const result = compatible
      ? `Compatible in the mode ${mode}`
      : `Not compatible in the mode ${mode}: ${count}`;
    verdict = `${result}. An update of ${action} is held to its own mode; leave out --mode to check for that.`;
  }
  if (replay === null) return verdict;
  // What the old schema does not mention is no promise, but may be in events.
  const but =
    compatible && replay.failed > 0 ? " Yet events like those above would be refused from then on." : "";
  return `${verdict}${but} ${eventsSummary(replay)}`;
}

function eventsSummary({ checked, failed }: CheckedEvents): string {
  if (checked === 0) return "There are no events to check.";
  const events = checked === 1 ? "The last event was checked" : `The last ${checked} events were checked`;
  return `${events}: ${failed === 0 ? "all conform" : `${failed} ${failed === 1 ? "does" : "do"} not conform`}.`;
}

/** One annotation of a file, as a GitHub workflow reads it from the log. */
interface Annotation {
  readonly level: "error" | "warning" | "notice";
  /** The path from the root of the repository; left out when the text came from stdin. */
  readonly file: string | undefined;
  readonly line: number;
  readonly title: string;
  readonly message: string;
}

/** A path as annotations name it: from the root of the repository; outside of one, as it was typed. */
function pathInWorkspace(path: string): string {
  const workspace = process.env["GITHUB_WORKSPACE"];
  if (workspace === undefined || workspace === "") return path;
  const inside = relative(workspace, resolve(path)).split(sep).join("/");
  return inside === "" || inside.startsWith("../") || inside === ".." ? path : inside;
}

/** `::error file=a.json,line=7,title=…::message`, on one line. */
export function annotationLine({ level, file, line, title, message }: Annotation): string {
  const place = file === undefined ? "" : `file=${property(file)},line=${line},`;
  return `::${level} ${place}title=${property(title)}::${data(message)}\n`;
}

/** Names in a schema come from outside, and the log is read on terminals as well. */
function data(text: string): string {
  return escapeControl(text.replaceAll("%", "%25").replaceAll("\r", "%0D").replaceAll("\n", "%0A"));
}

function property(text: string): string {
  return data(text).replaceAll(":", "%3A").replaceAll(",", "%2C");
}
