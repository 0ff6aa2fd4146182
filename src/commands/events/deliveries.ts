import { TargetCommand } from "../../cli/base-command.ts";
import { rowidArg } from "../../cli/flags.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { DELIVERY_LIST } from "../../resources/deliveries.ts";

export default class EventsDeliveries extends TargetCommand {
  static override summary = "Show where one event went: its delivery to each subscription.";
  static override examples = [
    "<%= config.bin %> events deliveries 42",
    {
      description: "One delivery with each of its attempts",
      command: "<%= config.bin %> deliveries get 7",
    },
  ];
  static override args = { id: rowidArg("event") };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(EventsDeliveries);
    const answer = await this.withTarget(flags, (evreg) => evreg.events.deliveries(args.id));
    await this.outputFor(flags).list(
      answer,
      DELIVERY_LIST,
      `No delivery of event ${args.id} to be seen: its action had no active subscription when it was published, or none that this token may read.`,
    );
    return EXIT.done;
  }
}
