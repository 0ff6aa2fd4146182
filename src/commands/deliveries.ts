import { Flags } from "@oclif/core";
import { emptyListHint, TargetCommand } from "../cli/base-command.ts";
import { definedOnly, hasFilters, numberFlag, rowidArg, timeFlag } from "../cli/flags.ts";
import { note, writeOut } from "../cli/io/output.ts";
import { noteStuckReason, noteUndelivered } from "../cli/notes.ts";
import { checkAllFlag, notePagination, printAllPages } from "../cli/resource-command.ts";
import { nextCommand } from "../cli/target/next-command.ts";
import { EXIT } from "../cli/usage-errors.ts";
import { DELIVERY_LIMITS, DELIVERY_STATUSES } from "../domain/delivery.ts";
import { ATTEMPT_LIST, DELIVERY_LIST, DELIVERY_RECORD } from "../resources/deliveries.ts";

export class DeliveriesList extends TargetCommand {
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

export class DeliveriesGet extends TargetCommand {
  static override summary = "Show one delivery with each of its attempts.";
  static override examples = ["<%= config.bin %> deliveries get 7"];
  static override args = { id: rowidArg("delivery") };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(DeliveriesGet);
    const output = this.outputFor(flags);
    await this.withTarget(flags, async (evreg) => {
      const answer = await evreg.deliveries.get(args.id);
      await output.record(answer, DELIVERY_RECORD);
      if (output.format !== "table") return;
      const { attempts } = answer.data;
      if (attempts.length > 0) {
        await writeOut("\n");
        await output.list({ data: attempts }, ATTEMPT_LIST, "");
      }
      await noteStuckReason(evreg, answer.data);
    });
    return EXIT.done;
  }
}

export class DeliveriesRetry extends TargetCommand {
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

export class DeliveriesSkip extends TargetCommand {
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
