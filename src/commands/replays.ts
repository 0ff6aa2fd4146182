import { Flags } from "@oclif/core";
import { emptyListHint, TargetCommand } from "../cli/base-command.ts";
import { definedOnly, hasFilters, numberFlag, rowidArg } from "../cli/flags.ts";
import { notePaused } from "../cli/notes.ts";
import { nextCommand } from "../cli/target/next-command.ts";
import { EXIT } from "../cli/usage-errors.ts";
import { REPLAY_STATUSES } from "../domain/replay.ts";
import { REPLAY_LIST, REPLAY_RECORD } from "../resources/replays.ts";

export class ReplaysList extends TargetCommand {
  static override aliases = ["replays"];
  static override usage =
    "<%= command.id %> [--subscription ID] [--status STATUS] [--limit NUMBER] [--after ID]";
  static override summary = "List replays, newest first.";
  static override examples = [
    "<%= config.bin %> replays",
    { description: "Those under way", command: "<%= config.bin %> replays --status running" },
  ];
  static override flags = {
    subscription: numberFlag("Only to this subscription.", { helpValue: "ID" }),
    status: Flags.option({
      summary: `Only those in this state: ${REPLAY_STATUSES.join(", ")}.`,
      options: REPLAY_STATUSES,
      helpValue: "STATUS",
    })(),
    limit: numberFlag("Replays to list, 1 to 500 (default 50)."),
    after: numberFlag("Go on behind this replay.", { helpValue: "ID" }),
  };

  async run(): Promise<number> {
    const { flags } = await this.parse(ReplaysList);
    const { subscription, status, limit, after } = flags;
    const query = definedOnly({ subscription, status, limit, after });
    const output = this.outputFor(flags);
    await this.withTarget(flags, async (evreg) => {
      const empty = hasFilters(query)
        ? () => emptyListHint("No replay matches.", evreg, query)
        : `No replays yet. Begin one: ${nextCommand("subscriptions replay ID --from TIME --status missed")}`;
      const answer = await evreg.replays.list(query);
      await output.list(answer, REPLAY_LIST, empty);
      if (output.format !== "table") return;
      const running = answer.data.filter((replay) => replay.status === "running");
      await notePaused(
        evreg,
        running.map((replay) => replay.subscription_id),
      );
    });
    return EXIT.done;
  }
}

export class ReplaysGet extends TargetCommand {
  static override summary = "Show one replay and how far it has come.";
  static override examples = ["<%= config.bin %> replays get 2"];
  static override args = { id: rowidArg("replay") };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ReplaysGet);
    const output = this.outputFor(flags);
    await this.withTarget(flags, async (evreg) => {
      const answer = await evreg.replays.get(args.id);
      await output.record(answer, REPLAY_RECORD);
      const { status, subscription_id: subscription } = answer.data;
      if (output.format === "table" && status === "running") await notePaused(evreg, [subscription]);
    });
    return EXIT.done;
  }
}

export class ReplaysCancel extends TargetCommand {
  static override summary = "End a replay before it is done.";
  static override description = "What it handed to delivery so far is sent all the same.";
  static override examples = ["<%= config.bin %> replays cancel 2"];
  static override args = { id: rowidArg("replay") };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ReplaysCancel);
    const answer = await this.withTarget(flags, (evreg) => evreg.replays.cancel(args.id));
    await this.outputFor(flags).record(answer, REPLAY_RECORD);
    return EXIT.done;
  }
}
