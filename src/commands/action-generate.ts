import { examples, TargetCommand } from "../cli/base-command.ts";
import { numberFlag, textArg } from "../cli/flags.ts";
import { escapeControlInJson } from "../cli/io/text.ts";
import { anySeed, samplePayloads } from "../cli/sample-payload.ts";
import { RawJson } from "../json/raw-json.ts";

/** More than this is no sample, and would be held in memory whole. */
const MAX_SAMPLES = 1_000;

export class ActionsSample extends TargetCommand {
  static override summary = "Generate payloads that conform to an action's schema.";
  static override description = `Each is checked by the schema before it is shown. Values that the schema gives as "examples" or "default" are among those taken. The same seed gives the same payloads for as long as the schema stays the same.

With --output jsonl each line is an event, as publish --batch reads it.`;
  static override examples = examples("evreg actions sample order.created", {
    "The same each time, for a test": "evreg actions sample order.created --seed 7 > order.json",
    "A hundred events":
      "evreg actions sample order.created --count 100 --output jsonl | evreg publish --batch -",
  });
  static override args = { name: textArg("Name of the action.") };
  static override flags = {
    count: numberFlag("How many, up to 1,000 (default 1).", { min: 1, max: MAX_SAMPLES }),
    seed: numberFlag("Chooses the payloads; any when not given."),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ActionsSample);
    const { count = 1 } = flags;
    const { data: action } = await this.withTarget(flags, (evreg) => evreg.actions.get(args.name));
    const seed = flags.seed ?? anySeed();
    const output = this.outputFor(flags);
    // Escapes change only bytes that were made up.
    const payloads = samplePayloads(action, seed, count).map((payload) =>
      RawJson.fromText(escapeControlInJson(payload.text())),
    );
    const events = payloads.map((payload) => ({ action: action.action, payload }));
    await output.text({ data: events, meta: { revision: action.revision, seed } }, () =>
      escapeControlInJson(
        payloads.map((payload) => `${JSON.stringify(payload.value(), null, 2)}\n`).join(""),
      ),
    );
    if (flags.seed === undefined) output.note(`The same again: --seed ${seed}`);
  }
}
