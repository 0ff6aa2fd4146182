import { examples, TargetCommand } from "../cli/base-command.ts";
import { definedOnly, numberFlag, optionalArg, textArg } from "../cli/flags.ts";
import { writeOut } from "../cli/io/output.ts";
import { escapeControl } from "../cli/io/text.ts";
import { readSchema } from "../cli/schema-file.ts";
import { usageError } from "../cli/usage-errors.ts";
import type { ActionRevision, Schemata } from "../domain/action.ts";
import type { Evreg } from "../evreg.ts";
import { differenceLine, differencesInShort, revisionColumns } from "../cli/views/actions.ts";
import { differencesOf } from "../schema/differences.ts";

/** One of the two schemas: its name for a person, and for a program `{ revision }` or `{ file }`. */
interface Side {
  readonly name: string;
  readonly reference: { readonly revision: number } | { readonly file: string };
  readonly schemata: Schemata;
}

export class ActionsDiff extends TargetCommand {
  static override summary = "Show how two schemas of an action differ.";
  static override description =
    "A whole number is a revision, anything else a file with a schema (JSON or YAML; - is stdin). One of them is compared with the current schema. With none, the last revision is compared with the one before. + was added, - was removed, ~ was changed.";
  static override usage = [
    "actions diff NAME",
    "actions diff NAME REVISION|FILE",
    "actions diff NAME REVISION REVISION|FILE",
  ];
  static override examples = examples({
    "What the last change was": "evreg actions diff order.created",
    "What has changed since revision 1": "evreg actions diff order.created 1",
    "What a file would change": "evreg actions diff order.created order.json",
    "Between two revisions, for a program": "evreg actions diff order.created 1 3 --json",
  });
  static override args = {
    name: textArg("Name of the action."),
    from: optionalArg("A revision, or a file to compare with the current schema."),
    to: optionalArg("A revision, or a file."),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ActionsDiff);
    const { from, to } = args;
    if (from !== undefined && to !== undefined && revisionIn(from) === undefined) {
      throw usageError(
        `${from} is no revision; of two, the first is a whole number and only the second may be a file.`,
      );
    }
    // Read before anything is opened: a folder is not held while a person types.
    const path = [from, to].find((word) => word !== undefined && revisionIn(word) === undefined);
    const file = path === undefined ? undefined : await fileSide(path);
    const [before, after] = await this.withTarget(flags, (evreg) => sidesOf(evreg, args, file));
    const differences = differencesOf(before.schemata, after.schemata);
    const output = this.outputFor(flags);
    if (output.format === "json") {
      const data = { action: args.name, from: before.reference, to: after.reference, differences };
      await output.document({ data });
    } else if (output.format === "jsonl") await output.lines(differences);
    else {
      const lines = differences.length === 0 ? ["No difference."] : differences.map(differenceLine);
      const head = `${escapeControl(args.name)}: ${before.name} → ${after.name}`;
      await writeOut([head, ...lines].map((line) => `${line}\n`).join(""));
    }
  }
}

async function sidesOf(
  evreg: Evreg,
  { name, from, to }: Readonly<Record<"name", string> & Record<"from" | "to", string | undefined>>,
  file: Side | undefined,
): Promise<readonly [Side, Side]> {
  const revision = async (number: number): Promise<Side> => {
    const { schemata } = (await evreg.actions.revision(name, number)).data;
    return { name: `revision ${number}`, reference: { revision: number }, schemata };
  };
  const last = async () => (await evreg.actions.get(name)).data.revision;
  if (from === undefined) {
    const number = await last();
    if (number === 1) throw usageError(`${name} has had one schema only; name a file to compare it with.`);
    return [await revision(number - 1), await revision(number)];
  }
  const first = revisionIn(from);
  if (first === undefined) return [await revision(await last()), file!];
  const second = to === undefined ? await last() : revisionIn(to);
  return [await revision(first), second === undefined ? file! : await revision(second)];
}

async function fileSide(path: string): Promise<Side> {
  const name = path === "-" ? "stdin" : escapeControl(path);
  return { name, reference: { file: path }, schemata: await readSchema(path) };
}

function revisionIn(word: string): number | undefined {
  return /^\d{1,15}$/.test(word) ? Number(word) : undefined;
}

export class ActionsHistory extends TargetCommand {
  static override summary = "List the schemas an action has had, newest first.";
  static override description =
    "Each event names the revision that it was checked by. To go back to an older one: evreg actions update NAME --from-revision NUMBER.";
  static override examples = examples("evreg actions history order.created", {
    "The schema of the first revision, which is the last of the list": `evreg actions history order.created --json | jq '.data[-1].schemata'`,
  });
  static override args = { name: textArg("Name of the action.") };
  static override flags = {
    limit: numberFlag("At most so many, 1 to 50 (default 20)."),
    after: numberFlag("Only revisions older than this one.", { helpValue: "REVISION" }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ActionsHistory);
    const output = this.outputFor(flags);
    const query = definedOnly({ limit: flags.limit, after: flags.after });
    await this.withTarget(flags, async (evreg) => {
      const answer = await evreg.actions.revisions(args.name, query);
      const changes = output.format === "table" ? await changesIn(evreg, answer.data) : new Map();
      await output.list(answer, revisionColumns(changes), `There is no revision older than ${flags.after}.`);
    });
  }
}

/** What each revision changed; the one before the last of the page is on the next page. */
async function changesIn(evreg: Evreg, page: readonly ActionRevision[]): Promise<Map<number, string>> {
  const last = page.at(-1);
  if (last === undefined) return new Map();
  const older =
    last.revision === 1 ? [] : [(await evreg.actions.revision(last.action, last.revision - 1)).data];
  const all = [...page, ...older];
  return new Map(
    page.map(({ revision, schemata }, index) => {
      const before = all[index + 1];
      if (before === undefined) return [revision, "first"];
      const differences = differencesOf(before.schemata, schemata);
      return [revision, differences.length === 0 ? "same schema" : differencesInShort(differences)];
    }),
  );
}
