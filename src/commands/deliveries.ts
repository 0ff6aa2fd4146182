import { Flags } from "@oclif/core";
import { examples, TargetCommand } from "../cli/base-command.ts";
import { choiceFlag, numberFlag, optionalRowidArg, rangeFlags, textFlag } from "../cli/flags.ts";
import { note, type Output, writeOut } from "../cli/io/output.ts";
import { noteStuckReason, noteUndelivered } from "../cli/notes.ts";
import { RETRY_STATUSES, retryMany } from "../cli/publish/retry-deliveries.ts";
import { allFlag, listCommand, pageFlags, recordCommand } from "../cli/resource-command.ts";
import { subscriptionFlag } from "../cli/subscriptions/name.ts";
import { nextCommand } from "../cli/target/next-command.ts";
import { EXIT, usageError } from "../cli/usage-errors.ts";
import { DELIVERY_LIMITS, type DeliveryWithAttempts } from "../domain/delivery.ts";
import { DELIVERY_STATUSES } from "../model/delivery.ts";
import { BACKLOG_CAUSES } from "../domain/stats/stats.ts";
import type { Evreg } from "../evreg.ts";
import { ATTEMPT_LIST, DELIVERIES } from "../cli/views/deliveries.ts";
import type { RecordView } from "../cli/views/view.ts";

export const DeliveriesList = listCommand(DELIVERIES, {
  usage:
    "<%= command.id %> [--event ID] [--subscription ID|NAME] [--action PATTERN] [--status STATUS] [--cause CAUSE] [--key VALUE] [--from TIME] [--to TIME] [--after ID] [--limit NUMBER | --all]",
  summary: "List deliveries, newest first.",
  examples: examples("evreg deliveries", {
    "Those of the last hour that failed for good": "evreg deliveries --status failed --from 1h",
    "What a subscription's filter stopped":
      "evreg deliveries --subscription billing/invoices --status filtered",
    "Every one of them, for another program":
      "evreg deliveries --subscription 3 --status failed --all | jq .event_id",
  }),
  flags: {
    event: numberFlag("Only of this event.", { helpValue: "ID" }),
    subscription: subscriptionFlag,
    action: textFlag("Only of this action's events; order.* for all beneath order.", "PATTERN"),
    status: choiceFlag(`Only those in this state: ${DELIVERY_STATUSES.join(", ")}.`, DELIVERY_STATUSES, {
      helpValue: "STATUS",
    }),
    cause: choiceFlag(
      `Only those that are unfinished for this cause, as evreg stats counts them: ${BACKLOG_CAUSES.join(", ")}.`,
      BACKLOG_CAUSES,
      { helpValue: "CAUSE" },
    ),
    key: textFlag("Only with this key, in subscriptions that are --ordered-by one.", "VALUE"),
    ...rangeFlags("Those created"),
    ...pageFlags(DELIVERIES),
    all: allFlag,
  },
  pageSize: DELIVERY_LIMITS.listDefault,
});

export const DeliveriesGet = recordCommand(DELIVERIES as RecordView<DeliveryWithAttempts>, "get", {
  summary: "Show one delivery with each of its attempts.",
  examples: ["evreg deliveries get 7"],
  after: async (evreg, delivery, output) => {
    if (output.format !== "table") return;
    const { attempts } = delivery;
    if (attempts.length > 0) {
      await writeOut("\n");
      await output.list({ data: attempts }, ATTEMPT_LIST, "");
    }
    await noteStuckReason(evreg, delivery);
  },
});

export class DeliveriesRetry extends TargetCommand {
  static override writes = true;
  static override summary = "Send a delivery again now, or all that failed or wait.";
  static override description = `With its ID: the delivery is sent again with all its retries, also one that was delivered. It goes before all others of its subscription, even while the subscription is slowed because its handler asked for that. The subscription's filter is applied again, also to a delivery that it stopped.

With --status failed: counts what failed for good, asks, and begins a replay for each subscription that has any. The server then sends them in the background, through restarts and crashes, and puts live deliveries first; evreg replays shows how far it is. Only events of a subscription's present action are sent.

With --status waiting: the same for what waits for its next attempt, as after a handler was mended. Each is due now, with all its retries again, and a subscription that is slowed is so no longer. In an order they stay in it.`;
  static override usage =
    "deliveries retry ID | --status failed|waiting [--subscription ID|NAME] [--action NAME] [--from TIME] [--to TIME] [--dry-run | --yes] [--wait]";
  static override examples = examples("evreg deliveries retry 7", {
    "All of the last hour that failed for one subscription":
      "evreg deliveries retry --status failed --subscription billing/invoices --from 1h",
    "All that wait, now that the handler works again":
      "evreg deliveries retry --status waiting --subscription billing/invoices",
    "How many failed, of each subscription": "evreg deliveries retry --status failed --dry-run",
  });
  static override args = { id: optionalRowidArg("delivery") };
  static override flags = {
    status: choiceFlag(
      "Send all that failed for good, or all that wait for their next attempt.",
      RETRY_STATUSES,
    ),
    subscription: subscriptionFlag,
    action: textFlag("Only of subscriptions to this action.", "NAME", { dependsOn: ["status"] }),
    ...rangeFlags("Events published"),
    "dry-run": Flags.boolean({
      summary: "Only count them.",
      dependsOn: ["status"],
      exclusive: ["wait", "yes"],
    }),
    yes: Flags.boolean({ summary: "Begin without asking.", dependsOn: ["status"] }),
    wait: Flags.boolean({
      summary:
        "Wait until all are on their way to the handlers, not for their answers; it needs a running server. Ctrl-C leaves it running.",
      dependsOn: ["status"],
    }),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(DeliveriesRetry);
    const { id } = args;
    const { status, subscription, action, from, to, yes, wait } = flags;
    const output = this.outputFor(flags);
    if (status === undefined) {
      if (id === undefined) {
        throw usageError("Give the ID of a delivery, or --status failed or waiting for all of these.");
      }
      if ((subscription ?? from ?? to) !== undefined) {
        throw usageError("--subscription, --from and --to are only for use with --status.");
      }
      await this.withTarget(flags, (evreg) => retryOne(evreg, id, output));
      return EXIT.done;
    }
    if (id !== undefined) throw usageError("Give the ID of a delivery or --status, not both.");
    const many = { status, subscription, action, from, to, yes, wait, dryRun: flags["dry-run"], output };
    return this.withTarget(flags, (evreg) => retryMany(evreg, many), {
      serverFor: wait ? "--wait" : undefined,
    });
  }
}

async function retryOne(evreg: Evreg, id: number, output: Output): Promise<void> {
  const answer = await evreg.deliveries.retry(id);
  await output.record(answer, DELIVERIES.record);
  if (output.format === "json") return;
  const { rowid, status, subscription_id: subscription } = answer.data;
  if (status === "held") {
    note(
      `Delivery ${rowid} is held: it waits until subscription ${subscription} is active again: ${nextCommand(`subscriptions update ${subscription} --active`)}`,
    );
  } else await noteUndelivered(evreg, "Deliveries", () => true);
}

export const DeliveriesSkip = recordCommand(DELIVERIES, "skip", {
  summary: "Give up a delivery that has failed so far, so that later ones are sent.",
  description:
    "For the one that an ordered subscription blocks for, and for any other that waits for a retry. It ends as failed, and can be sent again with deliveries retry.",
  examples: examples("evreg deliveries skip 7", {
    "Which delivery a subscription is blocked by": "evreg subscriptions get 3 --json | jq .data.blocked_by",
  }),
});
