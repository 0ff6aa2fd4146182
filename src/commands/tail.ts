import { Flags } from "@oclif/core";
import { examples, TargetCommand } from "../cli/base-command.ts";
import { choiceFlag, definedOnly, numberFlag, textFlag, timeFlag } from "../cli/flags.ts";
import { note, type Output, terminalWidth, writeOut } from "../cli/io/output.ts";
import { escapeControl } from "../cli/io/text.ts";
import { subscriptionFlag, subscriptionId } from "../cli/subscriptions/name.ts";
import { DELIVERY_STATUSES } from "../model/delivery.ts";
import { pastTime } from "../domain/formats.ts";
import type {
  DeliveryResult,
  StreamedEvent,
  StreamGap,
  StreamMessage,
  StreamQuery,
} from "../domain/stream.ts";
import type { Evreg } from "../evreg.ts";
import { systemClock } from "../runtime/clock.ts";
import { interruption } from "../cli/io/interruption.ts";
import { EXIT } from "../cli/usage-errors.ts";
import type { DeliveryStatus } from "../domain/delivery.ts";
import { type Cell, type Color, streamLine } from "../cli/io/table.ts";

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
        line: eventLine,
        waiting: `Waiting for events${action === undefined ? "" : ` of ${action}`}; Ctrl-C ends.`,
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
        line: (result) => resultLine(result, terminalWidth()),
        waiting: `Waiting for deliveries${action === undefined ? "" : ` of ${action}`}; Ctrl-C ends.`,
      });
    };
    return this.withTarget(flags, act, { serverFor: "deliveries tail" });
  }
}

interface Tail<T> {
  readonly query: StreamQuery;
  /** Records to show before it ends. */
  readonly max: number | undefined;
  readonly output: Output;
  /** The record that a message is about; `undefined` for one that is not to be shown. */
  readonly recordOf: (message: StreamMessage) => T | undefined;
  /** Writes a record as a line for people. */
  readonly line: (record: T) => string;
  /** What to say once all that was there is shown and nothing more comes for now. */
  readonly waiting: string;
}

/** Shows what a stream brings, a line each, until somebody has seen enough. Answers the exit code. */
async function follow<T>(evreg: Evreg, tail: Tail<T>): Promise<number> {
  const { query, max = Infinity, output, recordOf, line } = tail;
  const signal = interruption();
  let isBroken = false;
  let isReady = false;
  let shown = 0;
  const show = async (all: readonly T[]): Promise<void> => {
    const records = all.slice(0, max - shown);
    shown += records.length;
    if (records.length === 0) return;
    if (output.format === "table") await writeOut(records.map(line).join(""));
    else await output.lines(records);
  };
  const stream = await evreg.stream(query, {
    signal,
    disconnected() {
      if (!isBroken) note("Reconnecting …");
      isBroken = true;
    },
  });
  try {
    if (max === 0) return EXIT.done;
    for await (const batch of stream.batches()) {
      if (isBroken) note("Reconnected.");
      isBroken = false;
      const records: T[] = [];
      for (const message of batch) {
        if (message.type === "gap") {
          await show(records.splice(0));
          noteGap(message.data);
        } else if (message.type === "ready" && !isReady) {
          isReady = true;
          await show(records.splice(0));
          if (process.stderr.isTTY && shown < max) note(escapeControl(tail.waiting));
        }
        const record = recordOf(message);
        if (record !== undefined) records.push(record);
      }
      await show(records);
      if (shown >= max) return EXIT.done;
    }
    return EXIT.interrupted;
  } finally {
    await stream.close();
  }
}

const SENTENCES: Readonly<Record<StreamGap["reason"], string>> = {
  overrun:
    "The server remembers not all that happened in that time; evreg deliveries and evreg events list the rest.",
  restart: "The server has started again meanwhile: what it did in between may be missing here.",
  expired: "Some of these events are older than the server keeps them; they are missing here.",
  other_data: "The server has other data now, as after a restore; what happened in between may be missing.",
};

function noteGap({ reason }: StreamGap): void {
  note(`Gap: ${SENTENCES[reason]}`);
}

/** So many characters are shown of a payload beside its event, where nothing cuts it. */
const PREVIEW_CHARACTERS = 2_000;

/** Shows the time of the day in UTC on a terminal, and all of it in a pipe. */
function timeCell(timestamped: string, width: number | undefined): Cell {
  return {
    text: width === undefined ? timestamped : timestamped.replace(/^.*T(.{8}).*$/, "$1Z"),
    color: "dim",
  };
}

/** `12:03:11Z  order.created  #72  shop  {"id":7}` */
function eventLine({ rowid, action, application, timestamped, payload }: StreamedEvent): string {
  const width = terminalWidth();
  const cells: readonly Cell[] = [
    timeCell(timestamped, width),
    { text: action, cells: 20 },
    { text: `#${rowid}` },
    { text: application, cells: 10, color: "dim" },
    { text: payload?.text().slice(0, PREVIEW_CHARACTERS).replaceAll(/\s+/g, " ") ?? "" },
  ];
  return streamLine(cells, width);
}

/** `12:03:11Z  order.created  #72  → billing/invoices  waiting  500  12 ms` */
export function resultLine(result: DeliveryResult, width: number | undefined): string {
  const { event_id: event, action, application, subscription, timestamped, status } = result;
  // At 80 columns what became of it has room for the longest error.
  const [ofAction, ofSubscription] = width === undefined || width > 90 ? [18, 22] : [13, 18];
  const cells: readonly Cell[] = [
    timeCell(timestamped, width),
    { text: action, cells: ofAction },
    { text: `#${event}` },
    { text: `→ ${application}/${subscription}`, cells: ofSubscription },
    { text: outcomeOf(result), color: COLORS[status] ?? "yellow" },
  ];
  return streamLine(cells, width);
}

const COLORS: Partial<Record<DeliveryStatus, Color>> = {
  delivered: "green",
  failed: "red",
  filtered: "dim",
  cancelled: "dim",
};

function outcomeOf(result: DeliveryResult): string {
  const { status, status_code: code, error_code: error, duration_ms: ms } = result;
  const answer = code ?? error;
  // An answer that delivered says so.
  const word = status === "delivered" && typeof code === "number" ? undefined : status;
  const parts = [word, answer, ms === null || ms === undefined ? undefined : `${ms.toLocaleString("en")} ms`];
  return parts.filter((part) => part !== undefined && part !== null).join("  ");
}
