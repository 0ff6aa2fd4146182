import { EvregCommand } from "../../cli/base-command.ts";
import { REPLAY_RECORD } from "../../cli/columns.ts";
import { EXIT } from "../../cli/exit-code.ts";
import { rowidArg } from "../../cli/flags.ts";

export default class ReplaysGet extends EvregCommand {
  static override summary = "Show one replay and how far it has come.";
  static override examples = ["<%= config.bin %> replays get 2"];
  static override args = { id: rowidArg("replay") };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ReplaysGet);
    const answer = await this.withEvreg(flags, (evreg) => evreg.replays.get(args.id));
    await this.outputFor(flags).record(answer, REPLAY_RECORD);
    return EXIT.done;
  }
}
