import { Flags } from "@oclif/core";
import { examples } from "../cli/base-command.ts";
import { choiceFlag, numberFlag, rangeFlags, textFlag } from "../cli/flags.ts";
import { note } from "../cli/io/output.ts";
import { escapeControl } from "../cli/io/text.ts";
import { allFlag, listCommand, recordCommand } from "../cli/resource-command.ts";
import { nextCommand } from "../cli/target/next-command.ts";
import { whereSchema } from "../cli/schema-file.ts";
import { EVENT_LIMITS, type PageMeta } from "../domain/event.ts";
import { EVENTS, LIST_WITH_DELIVERIES } from "../cli/views/events.ts";

export const EventsList = listCommand(EVENTS, {
  summary: "List published events, newest first.",
  examples: examples({
    "The last 50": "evreg events",
    "Of one action, in the last two hours": "evreg events --action order.created --from 2h",
    "Of one day": "evreg events --from 2027-01-31 --to 2027-02-01",
    "Of the last hour, with what became of each": "evreg events --from 1h --deliveries",
    "Those from France, of one customer": "evreg events list --where country=FR --where customer.id=7",
    "Those of more than 100": `evreg events list --where '{"properties":{"total":{"minimum":100}},"required":["total"]}'`,
    "Every payload there ever was, oldest first": "evreg events --all --order asc | jq -c .payload",
  }),
  flags: {
    action: textFlag("Only events of this action; order.* for all beneath order.", "PATTERN"),
    ...rangeFlags("Those published"),
    where: Flags.string({
      summary:
        "Only those with this value in their payload, such as country=FR or customer.id=7 (may be repeated: all must be so), or whose payload conforms to a JSON Schema: a file, - for stdin, or inline. It goes through them one after the other.",
      helpValue: "MEMBER=VALUE|FILE|JSON",
      multiple: true,
      multipleNonGreedy: true,
      exclusive: ["page"],
    }),
    "idempotency-key": textFlag(
      "Only what was published under this key, one event of each application.",
      "KEY",
    ),
    deliveries: Flags.boolean({
      summary: "Each with the number of its deliveries in each state.",
    }),
    order: choiceFlag("desc for newest first, asc for oldest first.", ["asc", "desc"]),
    limit: numberFlag("Events a page, 1 to 500 (default 50)."),
    page: numberFlag("Page number, from 1.", { exclusive: ["after", "all"] }),
    after: numberFlag("Only those behind this event in the order of the list.", { helpValue: "ID" }),
    all: allFlag,
  },
  pageSize: EVENT_LIMITS.listDefault,
  columns: (query) => ("deliveries" in query ? LIST_WITH_DELIVERIES : EVENTS.list),
  readFlags: async ({ where, "idempotency-key": key }) => ({
    "idempotency-key": undefined,
    idempotency_key: key,
    ...(Array.isArray(where) ? { where: await whereSchema("--where", where as readonly string[]) } : {}),
  }),
  afterPage: warn,
});

function warn({ damaged = [], warnings = [] }: Partial<PageMeta>, isFirst: boolean): void {
  for (const { pointer, message } of isFirst ? warnings : [])
    note(`Warning: where${pointer}: ${escapeControl(message)}`);
  if (damaged.length === 0) return;
  const are = damaged.length === 1 ? "Event {} is" : "Events {} are";
  note(
    `Warning: ${are.replace("{}", damaged.join(", "))} damaged in the data file, and shown without a payload. What else is damaged: ${nextCommand("backup")}`,
  );
}

export const EventsGet = recordCommand(EVENTS, "get", {
  summary: "Show one event with its payload, as it was published.",
  examples: examples("evreg events get 42", {
    "Where it went": "evreg deliveries --event 42",
  }),
});
