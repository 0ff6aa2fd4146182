import { examples } from "../cli/base-command.ts";
import { choiceFlag, numberFlag, rangeFlags, textFlag } from "../cli/flags.ts";
import { note, writeOut } from "../cli/io/output.ts";
import { notePaused, noteStuckReason, noteUndelivered } from "../cli/notes.ts";
import { allFlag, listCommand, pageFlags, recordCommand } from "../cli/resource-command.ts";
import { subscriptionFlag } from "../cli/subscriptions/name.ts";
import { nextCommand } from "../cli/target/next-command.ts";
import { DELIVERY_LIMITS, type DeliveryWithAttempts } from "../domain/delivery.ts";
import { DELIVERY_STATUSES } from "../model/delivery.ts";
import { BACKLOG_CAUSES } from "../domain/stats/stats.ts";
import { ATTEMPT_LIST, DELIVERIES, REPLAYS } from "../cli/views/deliveries.ts";
import type { RecordView } from "../cli/views/view.ts";
import { REPLAY_LIMITS } from "../domain/replay.ts";
import { REPLAY_STATUSES } from "../model/replay.ts";

export const DeliveriesList = listCommand(DELIVERIES, {
  summary: "List deliveries, newest first.",
  examples: examples("evreg deliveries", {
    "Where one event went": "evreg deliveries --event 42",
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

export const DeliveriesRetry = recordCommand(DELIVERIES, "retry", {
  summary: "Send a delivery again now, with all its retries.",
  description:
    "Also one that was delivered. It goes with the first that is due of its subscription, in an order before later events, and ends the wait of one that is slowed because its handler asked for that. The subscription's filter is applied again, also to a delivery that it stopped. All that failed, or wait, of one subscription are sent by subscriptions replay.",
  examples: examples("evreg deliveries retry 7", {
    "All that failed for a subscription": "evreg subscriptions replay billing/invoices --status failed",
  }),
  after: async (evreg, { rowid, status, subscription_id: subscription }, output) => {
    if (output.format === "json") return;
    if (status === "held") {
      note(
        `Delivery ${rowid} is held: it waits until subscription ${subscription} is active again: ${nextCommand(`subscriptions update ${subscription} --active`)}`,
      );
    } else await noteUndelivered(evreg);
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

export const ReplaysList = listCommand(REPLAYS, {
  summary: "List replays, newest first.",
  examples: examples("evreg replays", {
    "Those under way": "evreg replays --status running",
  }),
  flags: {
    subscription: subscriptionFlag,
    status: choiceFlag(`Only those in this state: ${REPLAY_STATUSES.join(", ")}.`, REPLAY_STATUSES, {
      helpValue: "STATUS",
    }),
    ...pageFlags(REPLAYS),
  },
  pageSize: REPLAY_LIMITS.listDefault,
});

export const ReplaysGet = recordCommand(REPLAYS, "get", {
  summary: "Show one replay and how far it has come.",
  examples: ["evreg replays get 2"],
  after: async (evreg, replay, output) => {
    if (output.format === "table") await notePaused(evreg, replay);
  },
});

export const ReplaysCancel = recordCommand(REPLAYS, "cancel", {
  summary: "End a replay before it is done.",
  description: "What it handed to delivery so far is sent all the same.",
  examples: ["evreg replays cancel 2"],
});
