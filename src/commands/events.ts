import { Flags } from "@oclif/core";
import { emptyListHint, TargetCommand } from "../cli/base-command.ts";
import { definedOnly, hasFilters, numberFlag, rowidArg, timeFlag } from "../cli/flags.ts";
import { note } from "../cli/io/output.ts";
import { checkAllFlag, notePagination, printAllPages, recordCommand } from "../cli/resource-command.ts";
import { nextCommand } from "../cli/target/next-command.ts";
import { EXIT } from "../cli/usage-errors.ts";
import { EVENT_LIMITS, type EventQuery, type PageMeta } from "../domain/event.ts";
import { DELIVERIES } from "../resources/deliveries.ts";
import { EVENTS } from "../resources/events.ts";

export class EventsList extends TargetCommand {
  static override aliases = ["events"];
  static override usage =
    "<%= command.id %> [--action NAME] [--from TIME] [--to TIME] [--order asc|desc] [--page NUMBER | --after ID] [--limit NUMBER | --all]";
  static override summary = "List published events, newest first.";
  static override examples = [
    { description: "The last 50", command: "evreg events" },
    {
      description: "Of one action, since a day began",
      command: "evreg events --action order.created --from 2027-01-31",
    },
    {
      description: "Every payload there ever was, oldest first",
      command: "evreg events --all --order asc | jq -c .payload",
    },
  ];
  static override flags = {
    action: Flags.string({ summary: "Only events of this action.", helpValue: "NAME" }),
    from: timeFlag({ summary: "From this time on, inclusive: ISO 8601, or a date for its 00:00 UTC." }),
    to: timeFlag({ summary: "Before this time, exclusive: ISO 8601, or a date for its 00:00 UTC." }),
    order: Flags.option({
      summary: "desc for newest first, asc for oldest first.",
      options: ["asc", "desc"] as const,
      helpValue: "asc|desc",
    })(),
    limit: numberFlag("Events a page, 1 to 500 (default 50)."),
    page: numberFlag("Page number, from 1.", { exclusive: ["after", "all"] }),
    after: numberFlag("Only those after this event.", { helpValue: "ID" }),
    all: Flags.boolean({
      summary: "All of them, however many, one JSON record a line.",
      exclusive: ["json", "limit"],
    }),
  };

  async run(): Promise<number> {
    const { flags } = await this.parse(EventsList);
    checkAllFlag(flags);
    const { action, from, to, order, limit, page, after } = flags;
    const output = this.outputFor(flags);
    await this.withTarget(flags, async (evreg) => {
      const query = definedOnly({ action, from, to, order, limit, page, after });
      const read = async (next: EventQuery): ReturnType<typeof evreg.events.list> => {
        const answer = await evreg.events.list({ ...query, ...next });
        warnOfDamage(answer.meta);
        return answer;
      };
      if (flags.all) return printAllPages(read, output, after);
      const answer = await read({});
      const beyond = pastTheLastPage({ page, limit, total: answer.meta.total });
      const empty = hasFilters(query)
        ? async () => beyond ?? (await emptyListHint("No event matches.", evreg, query))
        : EVENTS.none();
      await output.list(answer, EVENTS.list, empty);
      const hasMore = async (last: number): Promise<boolean> => {
        const { page: _, ...rest } = query;
        return (await evreg.events.list({ ...rest, limit: 1, after: last })).data.length > 0;
      };
      const shown = { command: "events", flags, nouns: ["event", "events"] as const, hasMore };
      const { listDefault } = EVENT_LIMITS;
      await notePagination(
        { ...shown, records: answer.data, limit: limit ?? listDefault, total: answer.meta.total },
        output,
      );
    });
    return EXIT.done;
  }
}

/** Their payloads are `null` in the page. */
function warnOfDamage({ damaged = [] }: PageMeta): void {
  if (damaged.length === 0) return;
  const are = damaged.length === 1 ? "Event {} is" : "Events {} are";
  note(
    `Warning: ${are.replace("{}", damaged.join(", "))} damaged in the data file, and shown without a payload. See: ${nextCommand("doctor --deep")}`,
  );
}

/** What to tell of a page that is empty, though there are events. */
function pastTheLastPage({
  page,
  limit = EVENT_LIMITS.listDefault,
  total,
}: {
  readonly page: number | undefined;
  readonly limit: number | undefined;
  readonly total: number;
}): string | undefined {
  const last = Math.ceil(total / limit);
  if (page === undefined || last === 0 || page <= last) return undefined;
  return `There is no page ${page}: of ${total.toLocaleString("en")} events the last is --page ${last}.`;
}

export const EventsGet = recordCommand(EVENTS, "get", {
  summary: "Show one event with its payload, as it was published.",
  examples: ["evreg events get 42", "evreg events get 42 --json"],
});

export class EventsDeliveries extends TargetCommand {
  static override summary = "Show where one event went: its delivery to each subscription.";
  static override examples = [
    "evreg events deliveries 42",
    { description: "One delivery with each of its attempts", command: "evreg deliveries get 7" },
  ];
  static override args = { id: rowidArg("event") };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(EventsDeliveries);
    const answer = await this.withTarget(flags, (evreg) => evreg.events.deliveries(args.id));
    await this.outputFor(flags).list(
      answer,
      DELIVERIES.list,
      `No delivery of event ${args.id} to be seen: its action had no active subscription when it was published, or none that this token may read.`,
    );
  }
}
