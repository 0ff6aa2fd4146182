import { Flags } from "@oclif/core";
import { ConfigCommand } from "../../cli/base-command.ts";
import { note } from "../../cli/io/output.ts";
import type { Column } from "../../cli/io/table.ts";
import { escapeControl } from "../../cli/io/text.ts";
import { contextFor, readSettings } from "../../cli/target/place.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { CONFIG_KEYS } from "../../config/schema.ts";
import { type ShownKey, shownKeys } from "../../config/shown.ts";

/** The flags of other commands that set a key. Not those of secrets, which are not shown anyway. */
const KEY_FLAGS = Object.fromEntries(
  CONFIG_KEYS.flatMap(({ flag, path, secret }) =>
    flag === undefined || flag === "data" || secret === true
      ? []
      : [[flag, Flags.string({ summary: `Show it with this as ${path}.`, helpValue: "VALUE" })]],
  ),
);

export default class ConfigShow extends ConfigCommand {
  static override aliases = ["config"];
  static override usage =
    "<%= command.id %> [--host VALUE] [--port VALUE] [--log-level VALUE] [--log-format VALUE] [--url VALUE]";
  static override summary = "Show the configuration in force here, and where each value comes from.";
  static override description =
    "What evreg serve would use, with the same flags given here. Secrets are not shown, only that they are set. A configuration with mistakes ends with 2 and names each.";
  static override examples = [
    "<%= config.bin %> config",
    {
      description: "Of a server with other flags",
      command: "<%= config.bin %> config --data /var/lib/evreg --port 8080",
    },
    {
      description: "What is not at its default",
      command: "<%= config.bin %> config --json | jq '.data[] | select(.source != \"default\")'",
    },
  ];

  static override flags = KEY_FLAGS;

  async run(): Promise<number> {
    const { flags } = await this.parse(ConfigShow);
    const loaded = await readSettings(flags);
    const output = this.outputFor(flags);
    await output.list({ data: shownKeys(loaded), meta: { file: loaded.file ?? null } }, COLUMNS, "");
    if (output.format !== "table") return EXIT.done;
    const context = contextFor(flags, loaded, this.config.configDir);
    if (context !== undefined) {
      note(`Commands act on the context ${context.name} (${escapeControl(context.url)}); see evreg context.`);
    }
    return EXIT.done;
  }
}

const COLUMNS: readonly Column<ShownKey>[] = [
  { title: "KEY", value: ({ key }) => key },
  {
    title: "VALUE",
    value: ({ value }) => (Array.isArray(value) ? value.join(" ") : String(value ?? "")),
    shrinkTo: 12,
  },
  {
    title: "SOURCE",
    value: ({ source }) => source,
    color: ({ source }) => (source === "default" ? "dim" : undefined),
    // The place tells it too.
    dropOrder: 1,
  },
  { title: "PLACE", value: ({ place }) => place, shrinkTo: 24, cut: "start" },
];
