import { EvregCommand } from "../../cli/base-command.ts";
import { DELIVERY_RECORD } from "../../cli/columns.ts";
import { EXIT } from "../../cli/exit-code.ts";
import { rowidArg } from "../../cli/flags.ts";

export default class DeliveriesRetry extends EvregCommand {
  static override summary = "Send a delivery again now, with all its retries.";
  static override examples = ["<%= config.bin %> deliveries retry 7"];
  static override args = { id: rowidArg("Number of the delivery.") };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(DeliveriesRetry);
    const answer = await this.withEvreg(flags, (evreg) => evreg.deliveries.retry(args.id));
    await this.outputFor(flags).record(answer, DELIVERY_RECORD);
    return EXIT.done;
  }
}
