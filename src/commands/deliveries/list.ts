import { Flags } from "@oclif/core";
import { TargetCommand, emptyListHint } from "../../cli/base-command.ts";
import { definedOnly, hasFilters, numberFlag, timeFlag } from "../../cli/flags.ts";
import { checkAllFlag, notePagination, printAllPages } from "../../cli/resource-command.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { DELIVERY_LIMITS, DELIVERY_STATUSES } from "../../domain/delivery.ts";
import { DELIVERY_LIST } from "../../resources/deliveries.ts";

export default class DeliveriesList extends TargetCommand {
  static override aliases = ["deliveries"];
  static override usage =
    "<%= command.id %> [--event ID] [--subscription ID] [--action NAME] [--status STATUS] [--from TIME] [--to TIME] [--after ID] [--limit NUMBER | --all]";
  static override summary = "List deliveries, newest first.";
  static override examples = [
    "<%= config.bin %> deliveries",
    { description: "Those that failed for good", command: "<%= config.bin %> deliveries --status failed" },
    {
      description: "What a subscription's filter kept back",
      command: "<%= config.bin %> deliveries --subscription 3 --status filtered",
    },
    {
      description: "Every one of them, for another program",
      command: "<%= config.bin %> deliveries --subscription 3 --status failed --all | jq .event_id",
    },
  ];
  static override flags = {
    event: numberFlag("Only of this event.", { helpValue: "ID" }),
    subscription: numberFlag("Only to this subscription.", { helpValue: "ID" }),
    action: Flags.string({ summary: "Only of this action's events.", helpValue: "NAME" }),
    status: Flags.option({
      summary: `Only those in this state: ${DELIVERY_STATUSES.join(", ")}.`,
      options: DELIVERY_STATUSES,
      helpValue: "STATUS",
    })(),
    from: timeFlag({
      summary: "Created from this time on, inclusive: ISO 8601, or a date for its 00:00 UTC.",
    }),
    to: timeFlag({ summary: "Created before this time, exclusive: ISO 8601, or a date for its 00:00 UTC." }),
    limit: numberFlag("Deliveries to list, 1 to 500 (default 50)."),
    after: numberFlag("Go on behind this delivery.", { helpValue: "ID" }),
    all: Flags.boolean({
      summary: "All of them, however many, one JSON record a line.",
      exclusive: ["json", "limit"],
    }),
  };

  async run(): Promise<number> {
    const { flags } = await this.parse(DeliveriesList);
    checkAllFlag(flags);
    const { event, subscription, action, status, from, to, limit, after } = flags;
    const output = this.outputFor(flags);
    await this.withTarget(flags, async (evreg) => {
      const query = definedOnly({ event, subscription, action, status, from, to, limit, after });
      if (flags.all)
        return printAllPages((next) => evreg.deliveries.list({ ...query, ...next }), output, after);
      const empty = hasFilters(query)
        ? () => emptyListHint("No delivery matches.", evreg, query)
        : "No deliveries yet.";
      const { data } = await evreg.deliveries.list(query);
      await output.list({ data }, DELIVERY_LIST, empty);
      const hasMore = async (last: number): Promise<boolean> =>
        (await evreg.deliveries.list({ ...query, limit: 1, after: last })).data.length > 0;
      const shown = { command: "deliveries", flags, nouns: ["delivery", "deliveries"] as const, hasMore };
      await notePagination({ ...shown, records: data, limit: limit ?? DELIVERY_LIMITS.listDefault }, output);
    });
    return EXIT.done;
  }
}
