import { EvregCommand } from "../../cli/base-command.ts";
import { ATTEMPT_LIST, DELIVERY_RECORD } from "../../cli/columns.ts";
import { EXIT } from "../../cli/exit-code.ts";
import { rowidArg } from "../../cli/flags.ts";
import { writeOut } from "../../cli/output.ts";

export default class DeliveriesGet extends EvregCommand {
  static override summary = "Show one delivery with each of its attempts.";
  static override examples = ["<%= config.bin %> deliveries get 7"];
  static override args = { id: rowidArg("delivery") };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(DeliveriesGet);
    const answer = await this.withEvreg(flags, (evreg) => evreg.deliveries.get(args.id));
    const output = this.outputFor(flags);
    await output.record(answer, DELIVERY_RECORD);
    const { attempts } = answer.data;
    if (output.format === "table" && attempts.length > 0) {
      await writeOut("\n");
      await output.list({ data: attempts }, ATTEMPT_LIST, "");
    }
    return EXIT.done;
  }
}
