import { Flags } from "@oclif/core";
import { emptyListHint, examples, TargetCommand } from "../cli/base-command.ts";
import { choiceFlag, definedOnly, numberFlag, textFlag, timeFlag } from "../cli/flags.ts";
import { note, terminalWidth } from "../cli/io/output.ts";
import { subscriptionFlag, subscriptionId } from "../cli/subscriptions/name.ts";
import { follow } from "../cli/tail/follow.ts";
import { eventLines, resultLines } from "../cli/tail/records.ts";
import { DELIVERY_STATUSES } from "../model/delivery.ts";
import { pastTime } from "../domain/formats.ts";
import { isPattern } from "../domain/names.ts";
import type { DeliveryResult, StreamedEvent } from "../domain/stream.ts";
import type { Evreg } from "../evreg.ts";
import { systemClock } from "../runtime/clock.ts";

const ENDS =
  "It runs until Ctrl-C, connects again by itself when the connection breaks, and goes on where it was. --json and --output jsonl print a record a line.";

const actionFlag = textFlag("Only of this action; order.* for all beneath order.", "PATTERN");
const maxFlag = numberFlag("End after so many.");

export class EventsTail extends TargetCommand {
  static override summary = "Show events as they are published.";
  static override description = `A line for each: its time in UTC, action, ID and the action's application. ${ENDS} No event is left out and none comes twice.`;
  static override examples = examples("evreg events tail", {
    "Those of the last hour, then what comes": "evreg events tail --since 1h",
    "With their payloads": "evreg events tail --action order.created --payloads",
    "The next one, for a script": "evreg events tail --max 1 --output jsonl | jq .payload",
  });
  static override flags = {
    since: textFlag(
      "Begin in the past: 1h or 2d ago, a date for its 00:00 UTC, ISO 8601, or after the event of this ID (also --from).",
      "TIME|ID",
      { aliases: ["from"] },
    ),
    action: actionFlag,
    application: textFlag("Only of this application's actions.", "NAME"),
    payloads: Flags.boolean({
      summary: "Show payloads; by default only --json and --output jsonl do.",
      allowNo: true,
    }),
    max: maxFlag,
  };

  async run(): Promise<number> {
    const { flags } = await this.parse(EventsTail);
    const output = this.outputFor(flags);
    const { since, action, application, max } = flags;
    const payloads = flags.payloads ?? output.format !== "table";
    const from = since === undefined ? undefined : pastTime(since, systemClock.now());
    const query = definedOnly({ action, application, payloads, since: from });
    const act = (evreg: Evreg): Promise<number> =>
      follow<StreamedEvent>(evreg, {
        query: { topics: ["events"], ...query },
        max,
        output,
        recordOf: (message) => (message.type === "event" ? message.data : undefined),
        line: eventLines(terminalWidth()),
        waiting: "Waiting for events; Ctrl-C ends.",
        ready: () => noteUnknownAction(evreg, action),
      });
    return this.withTarget(flags, act, { serverFor: "events tail" });
  }
}

export class DeliveriesTail extends TargetCommand {
  static override summary = "Show what becomes of deliveries, an attempt a line.";
  static override description = `A line for each: its time in UTC, the action and ID of its event, the subscription, what became of it unless it was delivered, what the handler answered, and how long that took. ${ENDS}

With --since it begins with what the server remembers: the last 10,000 results since its start. evreg deliveries lists what was before that.`;
  static override examples = examples("evreg deliveries tail", {
    "What fails for good, also in the last hour": "evreg deliveries tail --status failed --since 1h",
    "Of one subscription": "evreg deliveries tail --subscription billing/invoices",
    "For another program": "evreg deliveries tail --output jsonl | jq -c '[.event_id, .status]'",
  });
  static override flags = {
    since: timeFlag({
      summary: "Begin in the past: 1h or 2d ago, a date for its 00:00 UTC, or ISO 8601 (also --from).",
      aliases: ["from"],
    }),
    action: actionFlag,
    application: textFlag("Only of this application's subscriptions.", "NAME"),
    subscription: subscriptionFlag,
    status: choiceFlag(
      "Only those that get this status, such as delivered, waiting or failed.",
      DELIVERY_STATUSES,
      {
        helpValue: "STATUS",
      },
    ),
    max: maxFlag,
  };

  async run(): Promise<number> {
    const { flags } = await this.parse(DeliveriesTail);
    const { action, application, since, status, max } = flags;
    const act = async (evreg: Evreg): Promise<number> => {
      const typed = flags.subscription;
      const subscription = typed === undefined ? undefined : await subscriptionId(evreg, typed);
      const filters = definedOnly({ action, subscription, status });
      return follow<DeliveryResult>(evreg, {
        query: { topics: ["deliveries"], ...filters, ...definedOnly({ application, since }) },
        max,
        output: this.outputFor(flags),
        recordOf: (message) => (message.type === "delivery" ? message.data : undefined),
        line: resultLines(terminalWidth()),
        waiting: "Waiting for deliveries; Ctrl-C ends.",
        ready: () => noteUnknownAction(evreg, action),
      });
    };
    return this.withTarget(flags, act, { serverFor: "deliveries tail" });
  }
}

/** Nothing comes of an action that does not exist, which is probably a slip. */
async function noteUnknownAction(evreg: Evreg, action: string | undefined): Promise<void> {
  if (action === undefined || isPattern(action)) return;
  const hint = await emptyListHint("", evreg, { action });
  if (hint !== "") note(hint.trim());
}
