import { Args } from "@oclif/core";
import { examples, TargetCommand } from "../cli/base-command.ts";
import { numberFlag, textArg, textFlag } from "../cli/flags.ts";
import { writeFile } from "../cli/io/files.ts";
import { note } from "../cli/io/output.ts";
import { counted, escapeControlInJson } from "../cli/io/text.ts";
import { anySeed, samplePayloads } from "../cli/sample-payload.ts";
import type { Action } from "../domain/action.ts";
import type { Evreg } from "../evreg.ts";
import { RawJson } from "../json/raw-json.ts";
import { typesFile } from "../schema/typescript/file.ts";

export class ActionsTypes extends TargetCommand {
  static override summary =
    "Print the types of payloads and deliveries, for code that publishes or receives.";
  static override description = `One file with a type for each payload, and Delivery: what a handler receives, with the type that belongs to its action. The same schemas give the same file, so you can store it with the code and compare.

A type is never narrower than its schema, save that a schema without "type" is taken to mean what its keywords are about. Bounds, lengths, patterns, formats and "not" have no counterpart in a type.`;
  static override examples = examples({
    "Of all actions": "evreg actions types --out src/events.ts",
    "Of two": "evreg actions types order.created order.paid",
    "In CI: fail when the schemas have changed": "evreg actions types | diff src/events.ts -",
  });
  static override args = {
    name: Args.string({
      description: "Names of actions; all when none is given.",
      multiple: true,
      ignoreStdin: true,
    }),
  };
  static override flags = {
    out: textFlag("Write to this file instead of stdout.", "FILE", { exclusive: ["json", "output"] }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ActionsTypes);
    const actions = await this.withTarget(flags, (evreg) => actionsNamed(evreg, args.name ?? []));
    if (actions.length === 0) note("No actions that may be read here: no type to declare.");
    const source = typesFile(actions);
    if (flags.out !== undefined) {
      await writeFile(flags.out, source, { force: true });
      note(`Wrote the types of ${counted(actions.length, "action")}.`);
    } else await this.outputFor(flags).plain(source);
  }
}

/** The actions of those names, or all that may be read without names. `not_found`. */
async function actionsNamed(evreg: Evreg, names: readonly string[]): Promise<readonly Action[]> {
  if (names.length === 0) return (await evreg.actions.list()).data;
  const actions: Action[] = [];
  for (const name of new Set(names)) actions.push((await evreg.actions.get(name)).data);
  return actions;
}

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
