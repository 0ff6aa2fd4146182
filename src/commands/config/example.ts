import { Flags } from "@oclif/core";
import { existsSync, readFileSync } from "node:fs";
import { BaseCommand } from "../../cli/base-command.ts";
import { writeFile } from "../../cli/io/files.ts";
import { writeOut } from "../../cli/io/output.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { exampleConfig } from "../../config/shown.ts";
import { EvregError } from "../../domain/error.ts";

export default class ConfigExample extends BaseCommand {
  static override usage = "config example [--output-file FILE]";
  static override summary = "Write a configuration file with every key, its default and what it is for.";
  static override description = "As it is, it changes nothing. With --json the text is the member `data`.";
  static override examples = [
    { description: "To read", command: "<%= config.bin %> config example | less" },
    {
      description: "To begin with",
      command: "<%= config.bin %> config example --output-file evreg.config.yaml",
    },
  ];
  static override flags = {
    "output-file": Flags.string({
      char: "o",
      summary: "Write into this file, which must not be there yet.",
      helpValue: "FILE",
    }),
  };

  async run(): Promise<number> {
    const { flags } = await this.parse(ConfigExample);
    const text = exampleConfig();
    const path = flags["output-file"];
    const output = this.outputFor(flags);
    if (path !== undefined && path !== "-") {
      refuseOther(path, text);
      await writeFile(path, text);
    } else if (output.format === "table") await writeOut(text);
    else await output.document({ data: text });
    return EXIT.done;
  }
}

/** Somebody's settings would be gone. */
function refuseOther(path: string, text: string): void {
  if (!existsSync(path) || readFileSync(path, "utf8") === text) return;
  throw new EvregError(
    "conflict",
    `${path} is there already, and another file. Name one that is not there yet.`,
  );
}
