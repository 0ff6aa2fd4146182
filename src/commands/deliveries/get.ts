import { TargetCommand } from "../../cli/base-command.ts";
import { rowidArg } from "../../cli/flags.ts";
import { writeOut } from "../../cli/io/output.ts";
import { noteStuckReason } from "../../cli/notes.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { ATTEMPT_LIST, DELIVERY_RECORD } from "../../resources/deliveries.ts";

export default class DeliveriesGet extends TargetCommand {
  static override summary = "Show one delivery with each of its attempts.";
  static override examples = ["<%= config.bin %> deliveries get 7"];
  static override args = { id: rowidArg("delivery") };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(DeliveriesGet);
    const output = this.outputFor(flags);
    await this.withTarget(flags, async (evreg) => {
      const answer = await evreg.deliveries.get(args.id);
      await output.record(answer, DELIVERY_RECORD);
      if (output.format !== "table") return;
      const { attempts } = answer.data;
      if (attempts.length > 0) {
        await writeOut("\n");
        await output.list({ data: attempts }, ATTEMPT_LIST, "");
      }
      await noteStuckReason(evreg, answer.data);
    });
    return EXIT.done;
  }
}
