import { Flags } from "@oclif/core";
import { TargetCommand, examples } from "../cli/base-command.ts";
import {
  choiceFlag,
  definedOnly,
  flagValue,
  numberFlag,
  textFlag,
  requiredFlag,
  rangeFlags,
} from "../cli/flags.ts";
import { canAsk, refusalOf } from "../cli/io/prompts.ts";
import { escapeControl } from "../cli/io/text.ts";
import {
  afterFailedTest,
  missedNote,
  noteFailing,
  notePaused,
  noteUndelivered,
  retriesNote,
  unmatchedNote,
} from "../cli/notes.ts";
import { payloadFrom } from "../cli/publish/publish-one.ts";
import { listCommand, recordCommand } from "../cli/resource-command.ts";
import { bearerFlags, bearerOf, settingsFlags, settingsOf } from "../cli/subscriptions/flags.ts";
import { subscriptionArg, subscriptionId } from "../cli/subscriptions/name.ts";
import { nextCommand } from "../cli/target/next-command.ts";
import { EXIT, usageError } from "../cli/usage-errors.ts";
import { EvregError } from "../domain/error.ts";
import { durationText } from "../domain/formats.ts";
import { isPattern, matches } from "../domain/names.ts";
import { REPLAY_SELECTIONS } from "../model/replay.ts";
import { SECRET_ROTATION, type SubscriptionMode } from "../domain/subscription.ts";
import type { Evreg } from "../evreg.ts";
import { RawJson } from "../json/raw-json.ts";
import { DURATION } from "../model/value-kinds.ts";
import { MODES } from "../model/subscription.ts";
import {
  REPLAY_COUNT_RECORD,
  REPLAYS,
  SUBSCRIPTION_ATTEMPT_LIST,
  THE_BEGINNING,
} from "../cli/views/deliveries.ts";
import { HANDLER_TEST_RECORD, NEW_SUBSCRIPTION_RECORD, SUBSCRIPTIONS } from "../cli/views/subscriptions.ts";

const OVERLAP = SECRET_ROTATION.properties.overlap_ms;

function secretNote(mode?: SubscriptionMode): string {
  const who = mode === "pull" ? "A consumer" : "The handler";
  return `The secret is shown only now. ${who} verifies each delivery's signature with it.`;
}

export const SubscriptionsList = listCommand(SUBSCRIPTIONS, {
  summary: "List the subscriptions: who gets which events, and where.",
  description:
    "STATE is active; failing while the last attempt failed; blocked for an ordered one that a delivery holds up; paused by a person; deactivated by evreg, for the reason that subscriptions get shows.",
  examples: examples("evreg subscriptions", {
    "The paused ones of an application": "evreg subscriptions list --application billing --no-active",
  }),
  flags: {
    application: textFlag("Only those of this application.", "NAME"),
    action: textFlag(
      "Only those that get this action's events; of order.*, those with this very pattern.",
      "PATTERN",
    ),
    active: Flags.boolean({ summary: "Only active ones; --no-active for only paused ones.", allowNo: true }),
  },
});

export const SubscriptionsGet = recordCommand(SUBSCRIPTIONS, "get", {
  summary: "Show one subscription.",
  examples: examples("evreg subscriptions get 3", {
    "By its name": "evreg subscriptions get billing/invoices",
  }),
  after: (_evreg, subscription, output) => {
    if (output.format === "table") noteFailing(subscription);
  },
});

const handlerFlag = textFlag(
  "Address that gets the deliveries: https: and public. A server with --dev sends to http: and to this machine as well, and so does one whose configuration allows it.",
  "URL",
);

export class SubscriptionsCreate extends TargetCommand {
  static override summary = "Subscribe a webhook handler to an action.";
  static override description =
    "Each event of the action published from now on is sent to the handler. The action may be a pattern, in quotes: 'order.*' for all beneath order, '*' for all, and also for those that are made later. The secret that signs the deliveries is printed once, here; all of one application and name have the same one.";
  static override examples = examples({
    "Send each event of order.created to the handler of billing":
      "evreg subscriptions create --application billing --subscription invoices --action order.created --handler https://billing.example.com/hooks",
    "Send each event of what is beneath order, now and later":
      "evreg subscriptions create --application billing --subscription books --action 'order.*' --handler https://billing.example.com/hooks",
    "Send only those from France":
      "evreg subscriptions create --application billing --subscription french --action order.created --handler https://billing.example.com/hooks --filter country=FR",
    "Let consumers claim them, which nothing can reach from outside":
      "evreg subscriptions create --application billing --subscription invoices --action order.created --mode pull",
    "Keep only the secret, in a file":
      "evreg subscriptions create --application billing --subscription invoices --action order.created --handler https://billing.example.com/hooks --json | jq -r .data.secret > secret",
    "Be told when a delivery, of anybody, has failed for good":
      "evreg subscriptions create --application ops --subscription alerts --action evreg.delivery.failed --handler https://ops.example.com/hooks",
  });
  static override flags = {
    application: requiredFlag("The subscribing application.", "NAME"),
    subscription: requiredFlag("Name of the subscription.", "NAME", { aliases: ["name"] }),
    action: requiredFlag("The action whose events are delivered, or a pattern such as 'order.*'.", "PATTERN"),
    handler: handlerFlag,
    mode: choiceFlag("push to the handler (default), or pull: consumers claim the deliveries.", MODES),
    active: Flags.boolean({
      summary: "--no-active creates it paused, and it misses what is published meanwhile.",
      allowNo: true,
    }),
    ...bearerFlags,
    ...settingsFlags,
  };

  async run(): Promise<void> {
    const { flags } = await this.parse(SubscriptionsCreate);
    const { application, subscription, action, handler, mode } = flags;
    if (handler === undefined && mode !== "pull") {
      throw usageError("Name the handler with --handler URL, or give --mode pull.");
    }
    const input = {
      application,
      subscription,
      action,
      ...definedOnly({ handler, mode, active: flags.active }),
      ...(await bearerOf(flags)),
      ...(await settingsOf(flags)),
    };
    const notes: (string | undefined)[] = [secretNote(mode)];
    const output = await this.showRecord(flags, NEW_SUBSCRIPTION_RECORD, async (evreg) => {
      const answer = await evreg.subscriptions.create(input);
      notes.push(await retriesNote(evreg, answer.data), await unmatchedNote(evreg, action));
      return answer;
    });
    for (const text of notes) if (text !== undefined) output.note(text);
  }
}

const MISSES_FROM_NOW =
  "It misses the events that are published from now on; --active says how many they were, and how to send them.";
/** Members whose change has an effect on when a delivery is tried again. */
const RETRY_MEMBERS = ["max_retries", "retry_schedule", "ordered", "on_exhausted"];

export class SubscriptionsUpdate extends TargetCommand {
  static override summary = "Change, pause or reactivate a subscription.";
  static override description =
    "Pausing holds the deliveries that are not finished and queues none for later events: it misses those. Reactivating resumes what is held, and says how many events were missed, and how to send them. With --active an active one that is slowed is sent to again at once.";
  static override examples = examples(
    "evreg subscriptions update 3 --handler https://billing.example.com/v2/hooks",
    {
      "Pause it, named by application and subscription":
        "evreg subscriptions update billing/invoices --no-active",
      "Go on": "evreg subscriptions update 3 --active",
      "Let the handler be asked with a bearer value that it knows":
        "evreg subscriptions update 3 --bearer-token-file ./handler.token",
      "Send signatures only, and no bearer value": "evreg subscriptions update 3 --bearer none",
      "Send only those whose payload conforms to a JSON Schema":
        "evreg subscriptions update 3 --filter french.json",
      "Send all of them again": "evreg subscriptions update 3 --filter none",
    },
  );
  static override args = { id: subscriptionArg };
  static override flags = {
    handler: handlerFlag,
    active: Flags.boolean({
      summary: "Reactivate it; --no-active pauses it, and it misses what is published meanwhile.",
      allowNo: true,
    }),
    action: textFlag("The action whose events are delivered, or a pattern such as 'order.*'.", "PATTERN"),
    ...bearerFlags,
    ...settingsFlags,
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SubscriptionsUpdate);
    const { handler, active, action } = flags;
    const change = {
      ...definedOnly({ handler, active, action }),
      ...(await bearerOf(flags)),
      ...(await settingsOf(flags)),
    };
    if (Object.keys(change).length === 0) {
      throw usageError(
        "Nothing to change: give at least one flag, such as --handler, --max-retries, --[no-]active or --filter; see --help.",
      );
    }
    const notes: (string | undefined)[] = [];
    const output = await this.showRecord(flags, SUBSCRIPTIONS.record, async (evreg) => {
      const id = await subscriptionId(evreg, args.id);
      const missed = active ? await missedNote(evreg, id) : undefined;
      const answer = await evreg.subscriptions.update(id, change);
      if (RETRY_MEMBERS.some((member) => member in change)) notes.push(await retriesNote(evreg, answer.data));
      notes.push("active" in change && !active ? MISSES_FROM_NOW : missed);
      if (action !== undefined) notes.push(await unmatchedNote(evreg, action));
      return answer;
    });
    for (const text of notes) if (text !== undefined) output.note(text);
  }
}

export class SubscriptionsTest extends TargetCommand {
  static override summary = "Send a subscription's handler one signed request, and see what comes back.";
  static override description = `The request is like that of a delivery: signed, with the subscription's headers and timeout, and through the same checks of the address. It is marked by the header X-Evreg-Test: true, its event_id is 0, and its webhook-id is new each time. It is sent once, also while the subscription is paused and whatever its filter says. Nothing is stored, and what comes back does not count for the handler's health.

The payload is made up from the action's schema, or given. Exit code 1 when the answer is not a success.`;
  static override examples = examples("evreg subscriptions test billing/invoices", {
    "With a payload of your own": `evreg subscriptions test billing/invoices --payload '{"id": 7}'`,
    "The status of the answer alone": "evreg subscriptions test 3 --json | jq .data.response.status_code",
  });
  static override args = { id: subscriptionArg };
  static override flags = {
    action: textFlag("The action, for a subscription to several; the first one unless given.", "NAME"),
    payload: textFlag("The payload: a file, - for stdin, or a JSON object.", "FILE"),
  };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(SubscriptionsTest);
    const { payload, action: named } = flags;
    const typed = payload === undefined ? undefined : await payloadFrom(payload);
    const act = async (evreg: Evreg): Promise<number> => {
      const id = await subscriptionId(evreg, args.id);
      const { data: subscription } = await evreg.subscriptions.get(id);
      const action = named ?? (await actionOf(evreg, subscription.action));
      const sent = typed ?? RawJson.fromValue((await evreg.actions.sample(action)).data.payload);
      const answer = await evreg.subscriptions.test(id, { action, payload: sent });
      const output = this.outputFor(flags);
      await output.record(answer, HANDLER_TEST_RECORD);
      const why = answer.data.outcome === "failed" ? afterFailedTest(answer.data) : undefined;
      if (why !== undefined) output.note(why);
      return answer.data.outcome === "delivered" ? EXIT.done : EXIT.failed;
    };
    return this.withTarget(flags, act, { serverFor: "subscriptions test" });
  }
}

/** Names the action, or the first that a pattern matches. */
async function actionOf(evreg: Evreg, pattern: string): Promise<string> {
  if (!isPattern(pattern)) return pattern;
  const { data } = await evreg.actions.list();
  const matching = data.find(({ action }) => matches(pattern, action));
  if (matching !== undefined) return matching.action;
  throw new EvregError(
    "not_found",
    `No action that may be read here is one of ${pattern}. Name one with --action.`,
  );
}

export class SubscriptionsAttempts extends TargetCommand {
  static override summary = "Show a subscription's last attempts, newest first.";
  static override examples = examples("evreg subscriptions attempts billing/invoices", {
    "What the handler answered to each": "evreg subscriptions attempts 3 --output jsonl | jq .response",
  });
  static override args = { id: subscriptionArg };
  static override flags = { limit: numberFlag("Attempts to list, 1 to 100 (default 50).") };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SubscriptionsAttempts);
    const answer = await this.withTarget(flags, async (evreg) => {
      const id = await subscriptionId(evreg, args.id);
      return evreg.subscriptions.attempts(id, definedOnly({ limit: flags.limit }));
    });
    await this.outputFor(flags).list(answer, SUBSCRIPTION_ATTEMPT_LIST, "No attempt has ended yet.");
  }
}

export class SubscriptionsDelete extends TargetCommand {
  static override summary = "Delete a subscription.";
  static override description =
    "Its unfinished deliveries are cancelled, and it tells how many waited (meta.cancelled with --json); what was delivered stays listed. On a terminal it asks before. To stop deliveries for a while, pause it instead.";
  static override examples = examples("evreg subscriptions delete 3", {
    "Pause it instead": "evreg subscriptions update 3 --no-active",
  });
  static override args = { id: subscriptionArg };
  static override flags = { yes: Flags.boolean({ summary: "Delete without asking." }) };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(SubscriptionsDelete);
    const answer = await this.withTarget(flags, async (evreg) => {
      const id = await subscriptionId(evreg, args.id);
      const refusal = flags.yes || !canAsk() ? undefined : await refusalToDelete(evreg, id);
      return refusal ?? evreg.subscriptions.delete(id);
    });
    if (typeof answer === "number") return answer;
    const output = this.outputFor(flags);
    await output.record(answer, SUBSCRIPTIONS.record);
    const cancelled = answer.meta?.cancelled ?? 0;
    const many = `${cancelled.toLocaleString("en")} deliveries that waited were`;
    const which = cancelled === 1 ? "1 delivery that waited was" : many;
    output.note(cancelled === 0 ? "Deleted." : `Deleted; ${which} cancelled.`);
    return EXIT.done;
  }
}

async function refusalToDelete(evreg: Evreg, id: number): Promise<number | undefined> {
  const { application, subscription, action } = (await evreg.subscriptions.get(id)).data;
  const named = escapeControl(`${application}/${subscription} to ${action}`);
  const question = `Delete subscription ${id} (${named}), with the deliveries not finished yet?`;
  return refusalOf(question, "Nothing was deleted.");
}

export class SubscriptionsRotateSecret extends TargetCommand {
  static override summary = "Give a subscription a new secret. It is printed only once.";
  static override description =
    "All subscriptions of its application and name get it. The previous secret stays valid for the overlap. Until then webhook-signature has a signature by each of the two, and X-Evreg-Signature and Authorization use the previous one. Let the handler accept both, and only the new one after the overlap.";
  static override examples = examples("evreg subscriptions rotate-secret 3", {
    "The handler gets the new one within an hour": "evreg subscriptions rotate-secret 3 --overlap 1h",
    "Somebody else knows the secret: end it at once": "evreg subscriptions rotate-secret 3 --expire-now",
    "Keep only the secret, in a file":
      "evreg subscriptions rotate-secret 3 --json | jq -r .data.secret > secret",
  });
  static override args = { id: subscriptionArg };
  static override flags = {
    overlap: textFlag(
      `How long the previous secret stays valid, such as 30m, 12h or 2d (default ${durationText(OVERLAP.default)}, at most ${durationText(OVERLAP.maximum)}).`,
      "TIME",
      { exclusive: ["expire-now"] },
    ),
    "expire-now": Flags.boolean({ summary: "End the previous secret at once." }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SubscriptionsRotateSecret);
    const { overlap } = flags;
    const typed = overlap === undefined ? undefined : flagValue("overlap", overlap, DURATION, OVERLAP);
    const rotation = definedOnly({ overlap_ms: flags["expire-now"] ? 0 : typed });
    let rotated = 1;
    const output = await this.showRecord(flags, NEW_SUBSCRIPTION_RECORD, async (evreg) => {
      const answer = await evreg.subscriptions.rotateSecret(await subscriptionId(evreg, args.id), rotation);
      // A server of before does not say.
      rotated = answer.meta?.rotated ?? 1;
      return answer;
    });
    if (rotated > 1) output.note(`All ${rotated} subscriptions of this application and name have it.`);
    output.note(secretNote());
  }
}

export class SubscriptionsReplay extends TargetCommand {
  static override summary = "Send a subscription many events of the past.";
  static override description = `The server does it in the background, through restarts and crashes, and puts live deliveries first: it sends eight at a time, at most 1,300 a second, and waits while the subscription is paused. Only events of the subscription's present action are sent. One replay runs per subscription at a time.

--status failed sends what failed for good, with all its retries again; waiting what has failed so far and waits for its next attempt, which is due now then, as after a handler was mended. Without --from that is all of them; missed and all need it. missed sends what has no delivery, as it was published while the subscription was paused, before it existed or while it had another action; all sends what failed and missed send, what the filter excluded, and what was delivered already once more. The filter in force decides on each. The handler knows an event it had by its webhook-id.`;
  static override examples = examples({
    "How many deliveries failed": "evreg subscriptions replay 3 --status failed --dry-run",
    "Send them again": "evreg subscriptions replay 3 --status failed",
    "What failed in the last hour": "evreg subscriptions replay billing/invoices --status failed --from 1h",
    "All that wait, now that the handler works again":
      "evreg subscriptions replay billing/invoices --status waiting",
    "What was published during a pause":
      "evreg subscriptions replay 3 --from 2026-11-20T22:00:00Z --to 2026-11-21T06:00:00Z --status missed",
  });
  static override args = { id: subscriptionArg };
  static override flags = {
    ...rangeFlags("Events published"),
    status: Flags.option({
      summary: `Which of them: ${REPLAY_SELECTIONS.join(", ")}.`,
      options: REPLAY_SELECTIONS,
      helpValue: REPLAY_SELECTIONS.join("|"),
      required: true,
    })(),
    "dry-run": Flags.boolean({ summary: "Only count them." }),
  };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(SubscriptionsReplay);
    const { to, status } = flags;
    const { from = status === "failed" || status === "waiting" ? THE_BEGINNING : undefined } = flags;
    if (from === undefined) throw usageError(`--status ${status} needs --from: since when.`);
    const input = { from, status, ...definedOnly({ to }) };
    const output = this.outputFor(flags);
    await this.withTarget(flags, async (evreg) => {
      const id = await subscriptionId(evreg, args.id);
      if (flags["dry-run"]) return output.record(await evreg.replays.count(id, input), REPLAY_COUNT_RECORD);
      const { data: started } = await evreg.replays.start(id, input);
      await output.record({ data: started }, REPLAYS.record);
      await noteUndelivered(evreg);
      await notePaused(evreg, started);
      const { rowid } = started;
      output.note(
        `It goes on in the background. Look at it: ${nextCommand(`replays get ${rowid}`)}. End it: ${nextCommand(`replays cancel ${rowid}`)}`,
      );
    });
  }
}
