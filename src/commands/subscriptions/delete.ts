import { EvregCommand } from "../../cli/base-command.ts";
import { SUBSCRIPTION_RECORD } from "../../cli/columns/subscriptions.ts";
import { EXIT } from "../../cli/exit-code.ts";
import { rowidArg } from "../../cli/flags.ts";
import { note } from "../../cli/output.ts";

export default class SubscriptionsDelete extends EvregCommand {
  static override summary = "Delete a subscription.";
  static override description =
    "Its unfinished deliveries are cancelled, and it tells how many waited (meta.cancelled with --json); what was delivered stays listed. To stop deliveries for a while, pause it instead.";
  static override examples = [
    "<%= config.bin %> subscriptions delete 3",
    { description: "Pause it instead", command: "<%= config.bin %> subscriptions update 3 --no-active" },
  ];
  static override args = { id: rowidArg("subscription") };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(SubscriptionsDelete);
    const answer = await this.withEvreg(flags, (evreg) => evreg.subscriptions.delete(args.id));
    const output = this.outputFor(flags);
    await output.record(answer, SUBSCRIPTION_RECORD);
    if (output.format === "table") note(`Deleted${cancelledText(answer.meta?.cancelled)}.`);
    return EXIT.done;
  }
}

/** @param cancelled `undefined` from a server that does not tell */
function cancelledText(cancelled = 0): string {
  if (cancelled === 0) return "";
  return cancelled === 1
    ? "; 1 delivery that waited was cancelled"
    : `; ${cancelled.toLocaleString("en")} deliveries that waited were cancelled`;
}
