import { TargetCommand } from "../../cli/base-command.ts";
import { rowidArg } from "../../cli/flags.ts";
import { note } from "../../cli/io/output.ts";
import { noteUndelivered } from "../../cli/notes.ts";
import { nextCommand } from "../../cli/target/next-command.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { DELIVERY_RECORD } from "../../resources/deliveries.ts";

export default class DeliveriesRetry extends TargetCommand {
  static override summary = "Send a delivery again now, with all its retries, also one that was delivered.";
  static override description =
    "It goes before all others of its subscription, also while that is slowed because its handler asked for it. The subscription's filter is asked anew, also for one that it kept back.";
  static override examples = ["<%= config.bin %> deliveries retry 7"];
  static override args = { id: rowidArg("delivery") };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(DeliveriesRetry);
    const output = this.outputFor(flags);
    await this.withTarget(flags, async (evreg) => {
      const answer = await evreg.deliveries.retry(args.id);
      await output.record(answer, DELIVERY_RECORD);
      if (output.format === "json") return;
      const { rowid, status, subscription_id: subscription } = answer.data;
      if (status === "held") {
        note(
          `Delivery ${rowid} is held: it waits until subscription ${subscription} is active again: ${nextCommand(`subscriptions update ${subscription} --active`)}`,
        );
      } else await noteUndelivered(evreg, "Deliveries", () => true);
    });
    return EXIT.done;
  }
}
