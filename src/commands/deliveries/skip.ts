import { TargetCommand } from "../../cli/base-command.ts";
import { rowidArg } from "../../cli/flags.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { DELIVERY_RECORD } from "../../resources/deliveries.ts";

export default class DeliveriesSkip extends TargetCommand {
  static override summary = "Give a delivery up that has failed so far, so that those behind it go on.";
  static override description =
    "For the one that an ordered subscription blocks for, and for any other that waits for a retry. It ends as failed, and can be sent again with deliveries retry.";
  static override examples = [
    "<%= config.bin %> deliveries skip 7",
    {
      description: "Which delivery a subscription is blocked by",
      command: "<%= config.bin %> subscriptions get 3 --json | jq .data.blocked_by",
    },
  ];
  static override args = { id: rowidArg("delivery") };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(DeliveriesSkip);
    const answer = await this.withTarget(flags, (evreg) => evreg.deliveries.skip(args.id));
    await this.outputFor(flags).record(answer, DELIVERY_RECORD);
    return EXIT.done;
  }
}
