import { TargetCommand } from "../../cli/base-command.ts";
import { rowidArg } from "../../cli/flags.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { REPLAY_RECORD } from "../../resources/replays.ts";

export default class ReplaysCancel extends TargetCommand {
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
