import { Args, Flags } from "@oclif/core";
import { TargetCommand } from "../../cli/base-command.ts";
import { writeFile } from "../../cli/io/files.ts";
import { note, writeOut } from "../../cli/io/output.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import type { Action } from "../../domain/action.ts";
import type { Evreg } from "../../evreg.ts";
import { declarationsFor } from "../../schema/typescript/declarations.ts";
import { stringLiteral } from "../../schema/typescript/print.ts";

export default class ActionsTypes extends TargetCommand {
  static override summary =
    "Print the types of payloads and deliveries, for code that publishes or receives.";
  static override description = `One file with a type for each payload, and Delivery: what a handler receives, told apart by its action. The same schemas give the same file, so that it can be kept beside the code and compared.

A type is never narrower than its schema, save that a schema without "type" is taken to mean what its keywords are about. Bounds, lengths, patterns, formats and "not" have no counterpart in a type.`;
  static override usage = "actions types [NAME ...] [--lang typescript] [--out FILE]";
  static override examples = [
    { description: "Of all actions", command: "<%= config.bin %> actions types --out src/events.ts" },
    {
      description: "Of two",
      command: "<%= config.bin %> actions types order.created order.paid --lang typescript",
    },
    {
      description: "In CI: fail when the schemas have changed",
      command: "<%= config.bin %> actions types | diff src/events.ts -",
    },
  ];
  static override args = {
    name: Args.string({
      description: "Names of actions; all when none is given.",
      multiple: true,
      ignoreStdin: true,
    }),
  };
  static override flags = {
    lang: Flags.option({
      summary: "The language (default typescript).",
      options: ["typescript"] as const,
      helpValue: "typescript",
    })(),
    out: Flags.string({
      summary: "Write to this file instead of stdout.",
      helpValue: "FILE",
      exclusive: ["json", "output"],
    }),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ActionsTypes);
    const actions = await this.withTarget(flags, (evreg) => actionsNamed(evreg, args.name ?? []));
    if (actions.length === 0) note("No actions yet, or none that this token may read: no type to declare.");
    const source = typesFile(actions);
    const output = this.outputFor(flags);
    if (flags.out !== undefined) {
      await writeFile(flags.out, source);
      note(`Wrote the types of ${actions.length === 1 ? "1 action" : `${actions.length} actions`}.`);
    } else if (output.format === "table") await writeOut(source);
    else await output.document({ data: source });
    return EXIT.done;
  }
}

/** Names of the types below, which no action's type may take. */
const OWN_NAMES = ["EventPayloads", "ActionName", "Delivery", "DeliveryOf"];

/** The actions as a file of TypeScript: a type for each payload, and one for the bodies of all deliveries. */
function typesFile(actions: readonly Action[]): string {
  const sorted = actions.toSorted((a, b) => (a.action < b.action ? -1 : 1));
  const { source, names } = declarationsFor(
    sorted.map(({ action, application, revision, schemata }) => ({
      name: action,
      schemata,
      about: [`The payload of ${action} (${application}, revision ${revision}).`],
    })),
    OWN_NAMES,
  );
  const payloads = sorted.map(({ action }, index) => `  ${stringLiteral(action)}: ${names[index]};\n`);
  return `${HEAD}
/** The payload of each action. */
export interface EventPayloads {
${payloads.join("")}}
${DELIVERY}${source === "" ? "" : "\n"}${source}`;
}

const HEAD = `// Made by \`evreg actions types\` from the schemas of the actions. Make it anew rather than edit it.
/* eslint-disable */
`;

const DELIVERY = `
export type ActionName = keyof EventPayloads;

/** What a handler receives for one action. */
export interface DeliveryOf<Name extends ActionName> {
  /** The same in every attempt. */
  event_id: string;
  action: Name;
  payload: EventPayloads[Name];
  /** ISO 8601, when the event was published. */
  timestamp: string;
  /** 1 for the first attempt. */
  delivery_attempt: number;
}

/** What a handler receives; \`action\` tells which payload it is. */
export type Delivery = { [Name in ActionName]: DeliveryOf<Name> }[ActionName];
`;

/** The actions of those names, or all that may be read when there are none. `not_found`. */
async function actionsNamed(evreg: Evreg, names: readonly string[]): Promise<readonly Action[]> {
  if (names.length === 0) return (await evreg.actions.list()).data;
  const actions: Action[] = [];
  for (const name of new Set(names)) actions.push((await evreg.actions.get(name)).data);
  return actions;
}
