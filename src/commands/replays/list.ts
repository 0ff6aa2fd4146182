import { Flags } from "@oclif/core";
import { TargetCommand, emptyListHint } from "../../cli/base-command.ts";
import { definedOnly, hasFilters, numberFlag } from "../../cli/flags.ts";
import { notePaused } from "../../cli/notes.ts";
import { nextCommand } from "../../cli/target/next-command.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { REPLAY_STATUSES } from "../../domain/replay.ts";
import { REPLAY_LIST } from "../../resources/replays.ts";

export default class ReplaysList extends TargetCommand {
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
