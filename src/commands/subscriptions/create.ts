import { Flags } from "@oclif/core";
import { TargetCommand } from "../../cli/base-command.ts";
import { definedOnly, numberFlag } from "../../cli/flags.ts";
import { note } from "../../cli/io/output.ts";
import { bearerFlags, bearerOf, settingsFlags, settingsOf } from "../../cli/subscription-flags.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { NEW_SUBSCRIPTION_RECORD } from "../../resources/subscriptions.ts";

export default class SubscriptionsCreate extends TargetCommand {
  static override summary = "Subscribe a webhook handler to an action.";
  static override description =
    "Each event of the action published from now on is sent to the handler. The secret that signs the deliveries is printed once, here.";
  static override usage =
    "subscriptions create --application NAME --subscription NAME --action NAME --handler URL [--max-retries NUMBER] [--no-active] [--bearer secret|none | --bearer-token-file FILE] [--filter FILE] [--rate-limit NUMBER] [--max-in-flight NUMBER] [--timeout DURATION] [--header 'NAME: VALUE']... [--retry-schedule DURATIONS] [--ordered [--on-exhausted block|skip]]";
  static override examples = [
    {
      description: "Send each event of order.created to the handler of billing",
      command:
        "<%= config.bin %> subscriptions create --application billing --subscription invoices --action order.created --handler https://billing.example.com/hooks",
    },
    {
      description: "Send only those whose payload conforms to a JSON Schema",
      command:
        "<%= config.bin %> subscriptions create --application billing --subscription french --action order.created --handler https://billing.example.com/hooks --filter french.json",
    },
    {
      description: "Keep only the secret, in a file",
      command:
        "<%= config.bin %> subscriptions create --application billing --subscription invoices --action order.created --handler https://billing.example.com/hooks --json | jq -r .data.secret > secret",
    },
    {
      description: "Be told when a delivery, of anybody, has failed for good",
      command:
        "<%= config.bin %> subscriptions create --application ops --subscription alerts --action evreg.delivery.failed --handler https://ops.example.com/hooks",
    },
  ];
  static override flags = {
    application: Flags.string({ summary: "The subscribing application.", helpValue: "NAME", required: true }),
    subscription: Flags.string({
      summary: "Name of the subscription.",
      helpValue: "NAME",
      required: true,
      aliases: ["name"],
    }),
    action: Flags.string({
      summary: "The action whose events are delivered.",
      helpValue: "NAME",
      required: true,
    }),
    handler: Flags.string({ summary: "Address that gets the deliveries.", helpValue: "URL", required: true }),
    "max-retries": numberFlag("Retries of a failed delivery, 0 to 20 (default 5)."),
    active: Flags.boolean({ summary: "--no-active creates it paused.", allowNo: true }),
    ...bearerFlags,
    ...settingsFlags,
  };

  async run(): Promise<number> {
    const { flags } = await this.parse(SubscriptionsCreate);
    const { application, subscription, action, handler } = flags;
    const bearer = await bearerOf(flags);
    const optional = {
      ...definedOnly({ max_retries: flags["max-retries"], active: flags.active }),
      ...bearer,
      ...(await settingsOf(flags)),
    };
    const answer = await this.withTarget(flags, (evreg) =>
      evreg.subscriptions.create({ application, subscription, action, handler, ...optional }),
    );
    const output = this.outputFor(flags);
    await output.record(answer, NEW_SUBSCRIPTION_RECORD);
    this.printWarnings(answer.meta, output);
    if (output.format === "table") {
      note("The secret is shown only now. The handler verifies each delivery's signature with it.");
    }
    return EXIT.done;
  }
}
