import { TargetCommand } from "../../cli/base-command.ts";
import { rowidArg } from "../../cli/flags.ts";
import { notePaused } from "../../cli/notes.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { REPLAY_RECORD } from "../../resources/replays.ts";

export default class ReplaysGet extends TargetCommand {
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
