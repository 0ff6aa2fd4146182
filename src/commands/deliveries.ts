import { examples } from "../cli/base-command.ts";
import { numberFlag, timeFlag, textFlag, choiceFlag } from "../cli/flags.ts";
import { note, writeOut } from "../cli/io/output.ts";
import { noteStuckReason, noteUndelivered } from "../cli/notes.ts";
import { allFlag, listCommand, pageFlags, recordCommand } from "../cli/resource-command.ts";
import { nextCommand } from "../cli/target/next-command.ts";
import { DELIVERY_LIMITS, DELIVERY_STATUSES, type DeliveryWithAttempts } from "../domain/delivery.ts";
import { ATTEMPT_LIST, DELIVERIES } from "../resources/deliveries.ts";
import type { Resource } from "../resources/resource.ts";

export const DeliveriesList = listCommand(DELIVERIES, {
  usage:
    "<%= command.id %> [--event ID] [--subscription ID] [--action NAME] [--status STATUS] [--from TIME] [--to TIME] [--after ID] [--limit NUMBER | --all]",
  summary: "List deliveries, newest first.",
  examples: examples("evreg deliveries", {
    "Those that failed for good": "evreg deliveries --status failed",
    "What a subscription's filter stopped": "evreg deliveries --subscription 3 --status filtered",
    "Every one of them, for another program":
      "evreg deliveries --subscription 3 --status failed --all | jq .event_id",
  }),
  flags: {
    event: numberFlag("Only of this event.", { helpValue: "ID" }),
    subscription: numberFlag("Only to this subscription.", { helpValue: "ID" }),
    action: textFlag("Only of this action's events.", "NAME"),
    status: choiceFlag(`Only those in this state: ${DELIVERY_STATUSES.join(", ")}.`, DELIVERY_STATUSES, {
      helpValue: "STATUS",
    }),
    from: timeFlag({
      summary: "Created from this time on, inclusive: ISO 8601, or a date for its 00:00 UTC.",
    }),
    to: timeFlag({ summary: "Created before this time, exclusive: ISO 8601, or a date for its 00:00 UTC." }),
    ...pageFlags(DELIVERIES),
    all: allFlag,
  },
  pageSize: DELIVERY_LIMITS.listDefault,
});

export const DeliveriesGet = recordCommand(DELIVERIES as Resource<DeliveryWithAttempts>, "get", {
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

export const DeliveriesRetry = recordCommand(DELIVERIES, "retry", {
  summary: "Send a delivery again now, with all its retries, also one that was delivered.",
  description:
    "It goes before all others of its subscription, even while the subscription is slowed because its handler asked for that. The subscription's filter is applied again, also to a delivery that it stopped.",
  examples: ["evreg deliveries retry 7"],
  after: async (evreg, { rowid, status, subscription_id: subscription }, output) => {
    if (output.format === "json") return;
    if (status === "held") {
      note(
        `Delivery ${rowid} is held: it waits until subscription ${subscription} is active again: ${nextCommand(`subscriptions update ${subscription} --active`)}`,
      );
    } else await noteUndelivered(evreg, "Deliveries", () => true);
  },
});

export const DeliveriesSkip = recordCommand(DELIVERIES, "skip", {
  summary: "Give up a delivery that has failed so far, so that later ones are sent.",
  description:
    "For the one that an ordered subscription blocks for, and for any other that waits for a retry. It ends as failed, and can be sent again with deliveries retry.",
  examples: examples("evreg deliveries skip 7", {
    "Which delivery a subscription is blocked by": "evreg subscriptions get 3 --json | jq .data.blocked_by",
  }),
});
