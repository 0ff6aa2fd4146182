import { TargetCommand } from "../../cli/base-command.ts";
import { numberFlag, textArg } from "../../cli/flags.ts";
import { note, type Output, writeOut } from "../../cli/io/output.ts";
import { escapeControlInJson } from "../../cli/io/text.ts";
import { anySeed, samplePayloads } from "../../cli/sample-payload.ts";
import { EXIT, usageError } from "../../cli/usage-errors.ts";
import type { Action } from "../../domain/action.ts";
import { RawJson } from "../../json/raw-json.ts";

/** More than this is no sample, and would be held in memory whole. */
const MOST = 1_000;

export default class ActionsSample extends TargetCommand {
  static override usage = "actions sample NAME [--count NUMBER] [--seed NUMBER]";
  static override summary = "Make up payloads that conform to an action's schema.";
  static override description = `Each is checked by the schema before it is shown. Values that the schema gives as "examples" or "default" are among those taken. The same seed gives the same payloads for as long as the schema stays the same.

With --output jsonl each line is an event, as publish --batch reads it.`;
  static override examples = [
    "<%= config.bin %> actions sample order.created",
    {
      description: "The same each time, for a test",
      command: "<%= config.bin %> actions sample order.created --seed 7 > order.json",
    },
    {
      description: "A hundred events",
      command:
        "<%= config.bin %> actions sample order.created --count 100 --output jsonl | <%= config.bin %> publish --batch -",
    },
  ];
  static override args = { name: textArg("Name of the action.") };
  static override flags = {
    count: numberFlag("How many, up to 1,000 (default 1)."),
    seed: numberFlag("Chooses the payloads; any when not given."),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ActionsSample);
    const { count = 1 } = flags;
    if (count < 1 || count > MOST) throw usageError(`--count: takes a number from 1 to 1,000, not ${count}.`);
    const { data: action } = await this.withTarget(flags, (evreg) => evreg.actions.get(args.name));
    const seed = flags.seed ?? anySeed();
    const output = this.outputFor(flags);
    await show(action, seed, count, output);
    if (flags.seed === undefined && output.format === "table") note(`The same again: --seed ${seed}`);
    return EXIT.done;
  }
}

async function show(action: Action, seed: number, count: number, output: Output): Promise<void> {
  // Made up, so that no bytes of anybody's are changed by their escapes.
  const payloads = samplePayloads(action, seed, count).map((payload) =>
    RawJson.fromText(escapeControlInJson(payload.text())),
  );
  const events = payloads.map((payload) => ({ action: action.action, payload }));
  if (output.format === "json") {
    return output.document({ data: events, meta: { revision: action.revision, seed } });
  }
  if (output.format === "jsonl") return output.lines(events);
  const text = payloads.map((payload) => `${JSON.stringify(payload.value(), null, 2)}\n`).join("");
  return writeOut(escapeControlInJson(text));
}
