import { BaseCommand } from "../../cli/base-command.ts";
import { optionalArg } from "../../cli/flags.ts";
import { readInput } from "../../cli/io/input.ts";
import { note } from "../../cli/io/output.ts";
import type { Column } from "../../cli/io/table.ts";
import { escapeControlKeepingLines } from "../../cli/io/text.ts";
import { EXIT } from "../../cli/usage-errors.ts";
import { loadConfig, type LoadedConfig } from "../../config/load.ts";
import type { Config } from "../../config/schema.ts";
import { EvregError } from "../../domain/error.ts";
import { readCertificate } from "../../runtime/certificate.ts";

export default class ConfigCheck extends BaseCommand {
  static override summary = "Check a configuration file, or the configuration a start here would have.";
  static override description =
    "A file is checked alone, without flags and variables, so that the answer is the same on every machine. Every mistake is named with its line, and the command then ends with 2.";
  static override examples = [
    { description: "Before it is rolled out", command: "<%= config.bin %> config check evreg.config.yaml" },
    { description: "From stdin", command: "<%= config.bin %> config check - < evreg.config.yaml" },
    {
      description: "What a start here would read, variables included",
      command: "<%= config.bin %> config check",
    },
    {
      description: "Every mistake as JSON",
      command: "<%= config.bin %> config check evreg.config.yaml --json 2>&1 | jq .details.problems",
    },
  ];
  static override args = { file: optionalArg("The file to check; - for stdin.") };

  async run(): Promise<number> {
    const { args, flags } = await this.parse(ConfigCheck);
    const loaded = await load(args.file);
    const warnings = [...loaded.warnings, ...unusableCertificate(loaded.config, args.file)];
    const data = {
      file: loaded.file ?? null,
      keys: [...loaded.places.keys()],
      warnings,
    };
    const output = this.outputFor(flags);
    await output.record({ data }, COLUMNS);
    if (output.format === "table") {
      for (const warning of warnings) note(`Warning: ${escapeControlKeepingLines(warning)}`);
      note(warnings.length === 0 ? "No mistakes." : "No mistakes beside that.");
    }
    return EXIT.done;
  }
}

async function load(file: string | undefined): Promise<LoadedConfig> {
  const cwd = process.cwd();
  if (file === undefined) return loadConfig({ env: process.env, cwd });
  if (file !== "-") return loadConfig({ env: {}, cwd, configFile: file, isArgument: true });
  const text = Buffer.from(await readInput(file)).toString("utf8");
  return loadConfig({ env: {}, cwd, configText: { name: "stdin", text } });
}

/**
 * Files may still be made where a configuration file goes to; a start here needs them.
 * @throws EvregError `usage` where it is the latter that was asked about
 */
function unusableCertificate({ tls: { cert, key } }: Config, file: string | undefined): readonly string[] {
  if (cert === undefined || key === undefined) return [];
  try {
    readCertificate({ cert, key });
    return [];
  } catch (error) {
    if (!(error instanceof EvregError) || file === undefined) throw error;
    return [`${error.message} A server on this machine would not start with it.`];
  }
}

interface Checked {
  readonly file: string | null;
  readonly keys: readonly string[];
}

const COLUMNS: readonly Column<Checked>[] = [
  { title: "File", value: ({ file }) => file ?? "none" },
  { title: "Sets", value: ({ keys }) => keys.join(", ") || "nothing" },
];
