import { Flags } from "@oclif/core";
import { TargetCommand } from "../../cli/base-command.ts";
import { definedOnly, numberFlag, rowidArg } from "../../cli/flags.ts";
import { bearerFlags, bearerOf, settingsFlags, settingsOf } from "../../cli/subscription-flags.ts";
import { EXIT, usageError } from "../../cli/usage-errors.ts";
import { SUBSCRIPTION_RECORD } from "../../resources/subscriptions.ts";

export default class SubscriptionsUpdate extends TargetCommand {
  static override usage =
    "subscriptions update ID [--handler URL] [--max-retries NUMBER] [--[no-]active] [--action NAME] [--bearer secret|none | --bearer-token-file FILE] [--filter FILE] [--rate-limit NUMBER] [--max-in-flight NUMBER] [--timeout DURATION] [--header 'NAME: VALUE']... [--retry-schedule DURATIONS] [--[no-]ordered] [--on-exhausted block|skip]";
  static override summary = "Change, pause or reactivate a subscription.";
  static override description =
    "Pausing holds the deliveries that are not finished and queues none for later events; reactivating resumes them. With --active an active one that is slowed is sent to again at once.";
  static override examples = [
    "<%= config.bin %> subscriptions update 3 --handler https://billing.example.com/v2/hooks",
    { description: "Pause it", command: "<%= config.bin %> subscriptions update 3 --no-active" },
    { description: "Go on", command: "<%= config.bin %> subscriptions update 3 --active" },
    {
      description: "Let the handler be asked with a bearer value that it knows",
      command: "<%= config.bin %> subscriptions update 3 --bearer-token-file ./handler.token",
    },
    {
      description: "Send signatures only, and no bearer value",
      command: "<%= config.bin %> subscriptions update 3 --bearer none",
    },
    {
      description: "Send only some of the events",
      command: `echo '{"properties":{"country":{"const":"FR"}},"required":["country"]}' | <%= config.bin %> subscriptions update 3 --filter -`,
    },
    {
      description: "Send all of them again",
      command: "<%= config.bin %> subscriptions update 3 --filter none",
    },
  ];
  static override args = { id: rowidArg("subscription") };
  static override flags = {
    handler: Flags.string({ summary: "Address that gets the deliveries.", helpValue: "URL" }),
    "max-retries": numberFlag("Retries of a failed delivery, 0 to 20."),
    active: Flags.boolean({ summary: "Reactivate it; --no-active pauses it.", allowNo: true }),
    action: Flags.string({ summary: "The action whose events are delivered.", helpValue: "NAME" }),
    ...bearerFlags,
    ...settingsFlags,
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(SubscriptionsUpdate);
    const { handler, active, action } = flags;
    const bearer = await bearerOf(flags);
    const change = {
      ...definedOnly({ handler, max_retries: flags["max-retries"], active, action }),
      ...bearer,
      ...(await settingsOf(flags)),
    };
    if (Object.keys(change).length === 0) {
      throw usageError(
        "Nothing to change: give at least one flag, such as --handler, --max-retries, --[no-]active or --filter; see --help.",
      );
    }
    const answer = await this.withTarget(flags, (evreg) => evreg.subscriptions.update(args.id, change));
    const output = this.outputFor(flags);
    await output.record(answer, SUBSCRIPTION_RECORD);
    this.printWarnings(answer.meta, output);
    return EXIT.done;
  }
}
