import { TargetCommand } from "../../cli/base-command.ts";
import { rowidArg } from "../../cli/flags.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { SUBSCRIPTION_RECORD } from "../../resources/subscriptions.ts";

export default class SubscriptionsGet extends TargetCommand {
  static override summary = "Show one subscription.";
  static override examples = ["<%= config.bin %> subscriptions get 3"];
  static override args = { id: rowidArg("subscription") };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(SubscriptionsGet);
    const answer = await this.withTarget(flags, (evreg) => evreg.subscriptions.get(args.id));
    await this.outputFor(flags).record(answer, SUBSCRIPTION_RECORD);
    return EXIT.done;
  }
}
