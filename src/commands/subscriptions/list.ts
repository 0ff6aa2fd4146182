import { Flags } from "@oclif/core";
import { TargetCommand, emptyListHint } from "../../cli/base-command.ts";
import { definedOnly, hasFilters } from "../../cli/flags.ts";
import { nextCommand } from "../../cli/target/next-command.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import type { Evreg } from "../../evreg.ts";
import { SUBSCRIPTION_LIST } from "../../resources/subscriptions.ts";

export default class SubscriptionsList extends TargetCommand {
  static override aliases = ["subscriptions"];
  static override usage = "<%= command.id %> [--application NAME] [--action NAME] [--[no-]active]";
  static override summary = "List the subscriptions: who gets which events, and where.";
  static override examples = [
    "<%= config.bin %> subscriptions",
    {
      description: "The paused ones of an application",
      command: "<%= config.bin %> subscriptions list --application billing --no-active",
    },
  ];
  static override flags = {
    application: Flags.string({ summary: "Only those of this application.", helpValue: "NAME" }),
    action: Flags.string({ summary: "Only those to this action.", helpValue: "NAME" }),
    active: Flags.boolean({ summary: "Only active ones; --no-active for only paused ones.", allowNo: true }),
  };

  async run(): Promise<number> {
    const { flags } = await this.parse(SubscriptionsList);
    const { application, action, active } = flags;
    const query = definedOnly({ application, action, active });
    await this.withTarget(flags, async (evreg, { kind }) => {
      await this.outputFor(flags).list(
        await evreg.subscriptions.list(query),
        SUBSCRIPTION_LIST,
        hasFilters(query)
          ? () => emptyListHint("No subscription matches.", evreg, query)
          : async () =>
              `No subscriptions yet${kind === "remote" && (await isLimited(evreg)) ? ", or none that this token may read" : ""}. Create one: ${nextCommand("subscriptions create --application APP --subscription NAME --action ACTION --handler URL")}`,
      );
    });
    return EXIT.done;
  }
}

/** Whether a token may read only what is of some applications. */
async function isLimited(evreg: Evreg): Promise<boolean> {
  const { data } = await evreg.whoami();
  return !data.scopes.some((scope) => scope === "read" || scope === "admin");
}
