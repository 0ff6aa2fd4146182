import { examples, TargetCommand } from "../cli/base-command.ts";
import { definedOnly, modeFlag, numberFlag, schemaFlag, textArg } from "../cli/flags.ts";
import { counted, escapeControl, someOf } from "../cli/io/text.ts";
import { interruption } from "../cli/io/interruption.ts";
import { payloadFrom } from "../cli/publish/publish-one.ts";
import { breakDetails, brokenRule } from "../cli/report-error.ts";
import { readSchemaSource } from "../cli/schema-file.ts";
import { EXIT } from "../cli/usage-errors.ts";
import type { CheckedEvents, CompatibilityMode, SchemaVerdict } from "../domain/action.ts";

export class ActionsCheck extends TargetCommand {
  static override summary = "Check what a schema would break, without changing anything.";
  static override description =
    "The exit code is 0 when an update with the schema would be applied. It is 5 when the update would be refused, or when one of the events of --replay does not conform. With --mode the verdict is for that mode; an update uses the mode that is given with it, or else the action's own.";
  static override examples = examples("evreg actions check order.created --schema order.json", {
    "Check the last 1,000 events with it as well":
      "evreg actions check order.created --schema order.json --replay 1000",
  });
  static override args = { name: textArg("Name of the action.") };
  static override flags = {
    schema: schemaFlag({ required: true }),
    mode: modeFlag("Whom it must not break, instead of the action's own mode."),
    replay: numberFlag("Check so many of the last events with it, up to 10,000."),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ActionsCheck);
    const { mode, replay } = flags;
    const { name: file, schemata, lineOf } = await readSchemaSource(flags.schema);
    const candidate = { schemata, ...definedOnly({ mode, replay }) };
    const answer = await this.withTarget(flags, ({ actions }) => actions.check(args.name, candidate));
    const verdict = answer.data;
    await this.outputFor(flags).text(answer, async () => {
      const checked = { action: args.name, file, lineOf, ...definedOnly({ mode }) };
      return verdictText(verdict, checked);
    });
    return verdict.compatible && (verdict.replay?.failed ?? 0) === 0 ? EXIT.done : EXIT.breaking;
  }
}

export class ActionsValidate extends TargetCommand {
  static override summary = "Check a payload against an action's schema, without publishing it.";
  static override description =
    "It tells what publishing the payload would find, and stores nothing. The exit code is 1 when the payload breaks a rule of the schema, and when the action is retired. It takes a token that may read the action, or publish to it.";
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
    await this.outputFor(flags).text(answer, () => {
      const schema = escapeControl(`the schema of ${action} (revision ${revision})`);
      const verdict = valid
        ? `Valid: it conforms to ${schema}.`
        : `Not valid: it does not conform to ${schema}.`;
      return [...errors.map(brokenRule), verdict].map((line) => `${line}\n`).join("");
    });
    return valid ? EXIT.done : EXIT.failed;
  }
}

/** The schema that was checked, and where its text is. */
interface CheckedSchema {
  readonly action: string;
  /** The file as it was typed, or what stands for it. */
  readonly file: string;
  readonly lineOf: (pointer: string) => number;
  /** The mode that was asked for. An update is held to the action's own, and may be refused all the same. */
  readonly mode?: CompatibilityMode;
}

/** Says a verdict to a person: a line for each break, warning and failure, then the verdict. */
function verdictText(verdict: SchemaVerdict, checked: CheckedSchema): string {
  const place = (pointer: string) =>
    `${escapeControl(checked.file)}:${checked.lineOf(pointer)}: ${escapeControl(pointer || "(root)")}`;
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

/** A line for each reason, with the newest of its events, and one for the events without a reason in the answer. */
function failureLines(replay: CheckedEvents | null): string[] {
  if (replay === null) return [];
  const byReason = Map.groupBy(replay.failures, ({ field, message }) =>
    escapeControl(`${field === "" ? "the payload" : field} ${message}`),
  );
  const lines = [...byReason].map(([reason, failures]) => {
    const events = failures.map(({ event }) => event);
    return `Event${events.length === 1 ? "" : "s"} ${someOf(events)}: ${reason}`;
  });
  const unlisted = replay.failed - replay.failures.length;
  if (unlisted > 0) lines.push(`${unlisted.toLocaleString("en")} older events fail too, not shown here.`);
  return lines;
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
