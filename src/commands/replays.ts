import { examples } from "../cli/base-command.ts";
import { choiceFlag } from "../cli/flags.ts";
import { notePaused } from "../cli/notes.ts";
import { listCommand, pageFlags, recordCommand } from "../cli/resource-command.ts";
import { subscriptionFlag } from "../cli/subscriptions/name.ts";
import { REPLAY_LIMITS, type Replay } from "../domain/replay.ts";
import { REPLAY_STATUSES } from "../model/replay.ts";
import type { Evreg } from "../evreg.ts";
import { REPLAYS } from "../cli/views/replays.ts";

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
  after: notePausedReplays,
});

export const ReplaysGet = recordCommand(REPLAYS, "get", {
  summary: "Show one replay and how far it has come.",
  examples: ["evreg replays get 2"],
  after: async (evreg, replay, output) => {
    if (output.format === "table") await notePausedReplays(evreg, [replay]);
  },
});

export const ReplaysCancel = recordCommand(REPLAYS, "cancel", {
  summary: "End a replay before it is done.",
  description: "What it handed to delivery so far is sent all the same.",
  examples: ["evreg replays cancel 2"],
});

function notePausedReplays(evreg: Evreg, replays: readonly Replay[]): Promise<void> {
  const running = replays.filter(({ status }) => status === "running");
  return notePaused(
    evreg,
    running.map((replay) => replay.subscription_id),
  );
}
