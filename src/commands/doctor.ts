import { Flags } from "@oclif/core";
import { EvregCommand } from "../cli/base-command.ts";
import { findingLines } from "../cli/doctor/finding-lines.ts";
import { EXIT } from "../cli/exit-code.ts";
import { rememberTarget } from "../cli/next-command.ts";
import type { Finding } from "../domain/finding.ts";

export default class Doctor extends EvregCommand {
  static override usage = "doctor [--deep]";
  static override summary = "Look at everything, and say what is wrong and what to do about it.";
  static override description =
    "Asks the server, which tells of its folder, disk, clock, tokens, handlers and what waits; without one it looks at the data folder itself, reads its whole file through, and changes nothing. Each line is ok, a warning or a problem. A problem is what stops evreg from doing its work or has lost it already: damage, a full disk, a server that does not answer, a data folder that was named and is not there, a handler that has failed for an hour or was deactivated. A warning may be meant, such as a server that is stopped. The exit code is 1 when there is a problem, and 0 with warnings only. Needs a token with the scope admin.";
  static override examples = [
    "<%= config.bin %> doctor",
    {
      description: "In a script",
      command: "<%= config.bin %> doctor --json | jq '.data[] | select(.remedy)'",
    },
    {
      description: "With the server's whole data file read through",
      command: "<%= config.bin %> doctor --deep --url https://events.example.com",
    },
  ];
  static override flags = {
    deep: Flags.boolean({
      summary: "Also have a running server make a backup, and read it through; takes room for two copies.",
    }),
  };

  async run(): Promise<number> {
    const { flags } = await this.parse(Doctor);
    rememberTarget(flags);
    const { version, configDir: configFolder } = this.config;
    const { examine } = await import("../cli/doctor/examine.ts");
    const data = await examine(flags, { version, deep: flags.deep, configFolder });
    const of = (status: Finding["status"]): number => data.filter((one) => one.status === status).length;
    const meta = { warnings: of("warning"), problems: of("problem") };
    await this.outputFor(flags).text({ data, meta }, (width) => findingLines(data, width));
    return meta.problems > 0 ? EXIT.failed : EXIT.done;
  }
}
