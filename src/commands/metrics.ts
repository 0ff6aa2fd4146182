import { TargetCommand } from "../cli/base-command.ts";
import { writeOut } from "../cli/io/output.ts";
import { EXIT } from "../cli/usage-errors.ts";

export default class Metrics extends TargetCommand {
  static override summary = "Print what the server has counted and measured, as Prometheus reads it.";
  static override description =
    "Without a server, on a data folder itself, only the backlog tells of more than this moment. With --json the text is the member `data`.";
  static override examples = [
    "<%= config.bin %> metrics",
    {
      description: "How much waits to be delivered",
      command: "<%= config.bin %> metrics | grep ^evreg_backlog",
    },
  ];

  async run(): Promise<number> {
    const { flags } = await this.parse(Metrics);
    const text = await this.withTarget(flags, (evreg) => evreg.metrics());
    const output = this.outputFor(flags);
    if (output.format === "table") await writeOut(text);
    else await output.document({ data: text });
    return EXIT.done;
  }
}
