import { TargetCommand } from "../../cli/base-command.ts";
import { definedOnly, numberFlag, textArg } from "../../cli/flags.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import type { ActionRevision } from "../../domain/action.ts";
import type { Evreg } from "../../evreg.ts";
import { differencesInShort, revisionColumns } from "../../resources/actions.ts";
import { differencesOf } from "../../schema/pointers.ts";

export default class ActionsHistory extends TargetCommand {
  static override usage = "actions history NAME [--limit NUMBER] [--after REVISION]";
  static override summary = "List the schemas an action has had, newest first.";
  static override description =
    "Each event tells the revision it was validated against. To go back to an earlier one: evreg actions update NAME --from-revision NUMBER.";
  static override examples = [
    "<%= config.bin %> actions history order.created",
    {
      description: "The schema of the first revision, which is the last of the list",
      command: `<%= config.bin %> actions history order.created --json | jq '.data[-1].schemata'`,
    },
  ];
  static override args = { name: textArg("Name of the action.") };
  static override flags = {
    limit: numberFlag("At most so many, 1 to 50 (default 20)."),
    after: numberFlag("Only revisions older than this one.", { helpValue: "REVISION" }),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ActionsHistory);
    const output = this.outputFor(flags);
    const query = definedOnly({ limit: flags.limit, after: flags.after });
    await this.withTarget(flags, async (evreg) => {
      const answer = await evreg.actions.revisions(args.name, query);
      const changes = output.format === "table" ? await changesIn(evreg, answer.data) : new Map();
      await output.list(answer, revisionColumns(changes), `There is no revision older than ${flags.after}.`);
    });
    return EXIT.done;
  }
}

/** What each revision changed of the one before it, which for the last of the page is on the next. */
async function changesIn(
  evreg: Evreg,
  page: readonly ActionRevision[],
): Promise<ReadonlyMap<number, string>> {
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
