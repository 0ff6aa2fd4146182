import { TargetCommand } from "../../cli/base-command.ts";
import { rowidArg } from "../../cli/flags.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { EVENT_RECORD } from "../../resources/events.ts";

export default class EventsGet extends TargetCommand {
  static override summary = "Show one event with its payload, as it was published.";
  static override examples = ["<%= config.bin %> events get 42", "<%= config.bin %> events get 42 --json"];
  static override args = { id: rowidArg("event") };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(EventsGet);
    const answer = await this.withTarget(flags, (evreg) => evreg.events.get(args.id));
    await this.outputFor(flags).record(answer, EVENT_RECORD);
    return EXIT.done;
  }
}
