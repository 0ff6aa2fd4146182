import { Flags } from "@oclif/core";
import { TargetCommand } from "../../cli/base-command.ts";
import { rowidArg } from "../../cli/flags.ts";
import { note } from "../../cli/io/output.ts";
import { confirm, type Confirmation, canAsk } from "../../cli/io/prompts.ts";
import { escapeControl } from "../../cli/io/text.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { EvregError } from "../../domain/error.ts";
import type { Evreg } from "../../evreg.ts";
import { SUBSCRIPTION_RECORD } from "../../resources/subscriptions.ts";

export default class SubscriptionsDelete extends TargetCommand {
  static override summary = "Delete a subscription.";
  static override description =
    "Its unfinished deliveries are cancelled, and it tells how many waited (meta.cancelled with --json); what was delivered stays listed. On a terminal it asks before. To stop deliveries for a while, pause it instead.";
  static override usage = "subscriptions delete ID [--yes] [--json]";
  static override examples = [
    "<%= config.bin %> subscriptions delete 3",
    { description: "Pause it instead", command: "<%= config.bin %> subscriptions update 3 --no-active" },
  ];
  static override args = { id: rowidArg("subscription") };
  static override flags = { yes: Flags.boolean({ summary: "Delete without asking." }) };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(SubscriptionsDelete);
    const answer = await this.withTarget(flags, async (evreg) => {
      const agreement = flags.yes || !canAsk() ? "yes" : await confirmDelete(evreg, args.id);
      return agreement === "yes" ? evreg.subscriptions.delete(args.id) : agreement;
    });
    if (typeof answer === "string") {
      note("Nothing was deleted.");
      return answer === "no" ? EXIT.failed : EXIT.interrupted;
    }
    const output = this.outputFor(flags);
    await output.record(answer, SUBSCRIPTION_RECORD);
    if (output.format === "table") note(`Deleted${cancelledText(answer.meta?.cancelled)}.`);
    return EXIT.done;
  }
}

async function confirmDelete(evreg: Evreg, id: number): Promise<Confirmation> {
  const named = await evreg.subscriptions.get(id).then(
    ({ data: { application, subscription, action } }) =>
      escapeControl(` (${application}/${subscription} to ${action})`),
    (error: unknown) => {
      // A token may be allowed to delete, and not to look.
      if (error instanceof EvregError && error.code === "forbidden") return "";
      throw error;
    },
  );
  return confirm(`Delete subscription ${id}${named}, with the deliveries not finished yet?`);
}

/** @param cancelled `undefined` from a server that does not tell */
function cancelledText(cancelled = 0): string {
  if (cancelled === 0) return "";
  return cancelled === 1
    ? "; 1 delivery that waited was cancelled"
    : `; ${cancelled.toLocaleString("en")} deliveries that waited were cancelled`;
}
