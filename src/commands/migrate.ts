import { Flags } from "@oclif/core";
import { existsSync } from "node:fs";
import { ConfigCommand } from "../cli/base-command.ts";
import { acceptLossFlag } from "../cli/flags.ts";
import { stderrLogger } from "../cli/io/output.ts";
import type { Column } from "../cli/io/table.ts";
import { readSettings } from "../cli/target/place.ts";
import { EXIT } from "../cli/usage-errors.ts";
import { encryptionKeys } from "../config/values.ts";
import { EvregError } from "../domain/error.ts";

export default class Migrate extends ConfigCommand {
  static override usage = "migrate [--status | --dry-run | --accept-loss]";
  static override summary = "Bring the data file to the form this version of evreg needs.";
  static override description =
    "Each start of a server does the same, so this is for doing it, or looking at it, before one. No other command does: on a file of an older form they end and name this one, as an older evreg could not open the file afterwards. A copy of the file as it was is kept beside it. A file of a newer evreg is refused and left as it is.";
  static override examples = [
    { description: "What is, and what is still to do", command: "<%= config.bin %> migrate --status" },
    { description: "What a migration would do", command: "<%= config.bin %> migrate --dry-run" },
    {
      description: "Do it, with the server stopped",
      command: "<%= config.bin %> migrate --data /var/lib/evreg",
    },
  ];
  static override flags = {
    status: Flags.boolean({
      summary: "Only show the form of the file; a server may be running.",
      exclusive: ["dry-run", "accept-loss"],
    }),
    "dry-run": Flags.boolean({
      summary: "Only show which steps would be taken.",
      exclusive: ["accept-loss"],
    }),
    "accept-loss": acceptLossFlag,
  };

  async run(): Promise<number> {
    const { flags } = await this.parse(Migrate);
    const { config } = await readSettings(flags);
    if (flags.status && !existsSync(config.data)) {
      throw new EvregError(
        "not_found",
        `There is no data folder ${config.data}. Name another with --data; a server that is started on it makes one.`,
      );
    }
    const { loadMigrations } = await import("../app/server.ts");
    const { inspectMigrations, migrate } = await loadMigrations();
    const encryption = encryptionKeys(config.encryption);
    const data = flags.status
      ? inspectMigrations(config.data)
      : await migrate(config.data, {
          dryRun: flags["dry-run"],
          acceptsLoss: flags["accept-loss"],
          encryption,
          logger: stderrLogger,
        });
    await this.outputFor(flags).record({ data }, COLUMNS);
    return EXIT.done;
  }
}

interface Shown {
  readonly file: string;
  readonly exists: boolean;
  readonly current: number;
  readonly latest: number;
  readonly pending: readonly { readonly version: number; readonly name: string }[];
  readonly applied?: readonly number[];
  readonly copy?: string;
}

const COLUMNS: readonly Column<Shown>[] = [
  { title: "File", value: ({ file, exists }) => (exists ? file : `${file} (not there yet)`) },
  { title: "Form", value: ({ current, latest }) => `${current} of ${latest}` },
  {
    title: "To do",
    value: ({ pending }) =>
      pending.map(({ version, name }) => `${version} (${name})`).join(", ") || "nothing",
    color: ({ pending }) => (pending.length > 0 ? "yellow" : "green"),
  },
  { title: "Done now", value: ({ applied }) => applied && (applied.join(", ") || "nothing") },
  { title: "Copy", value: ({ copy }) => copy },
];
