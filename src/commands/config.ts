import { BaseCommand, ConfigCommand, examples } from "../cli/base-command.ts";
import { optionalArg, outputFileFlags } from "../cli/flags.ts";
import { writeFile } from "../cli/io/files.ts";
import { readInput } from "../cli/io/input.ts";
import { note } from "../cli/io/output.ts";
import type { Column } from "../cli/io/table.ts";
import { escapeControlKeepingLines, wrap } from "../cli/io/text.ts";
import { readSettings } from "../cli/target/target.ts";
import { loadConfig, type LoadedConfig } from "../config/load.ts";
import { type Config, CONFIG_KEYS, type ConfigKey } from "../config/keys.ts";
import { type ShownKey, shownKeys } from "../config/values.ts";
import { readAuthorities, readCertificate } from "../runtime/certificate.ts";

export class ConfigShow extends ConfigCommand {
  static override aliases = ["config"];
  static override summary = "Show the configuration that applies here, and where each value comes from.";
  static override description =
    "Shows what evreg serve would use here. Of a secret it shows only that it is set. If the configuration has mistakes, the command names each and ends with 2.";
  static override examples = examples("evreg config", {
    "Of a server with other settings": "EVREG_PORT=8080 evreg config --data /var/lib/evreg",
    "What is not at its default": "evreg config --json | jq '.data[] | select(.source != \"default\")'",
  });

  async run(): Promise<void> {
    const { flags } = await this.parse(ConfigShow);
    const loaded = await readSettings(flags);
    const answer = { data: shownKeys(loaded), meta: { file: loaded.file ?? null } };
    await this.outputFor(flags).list(answer, KEY_LIST, "");
  }
}

const KEY_LIST: readonly Column<ShownKey>[] = [
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
  { title: "PLACE", value: ({ place }) => place, shrinkTo: 24 },
];

export class ConfigCheck extends BaseCommand {
  static override summary = "Check a configuration file, or the configuration that applies here.";
  static override description =
    "A file is checked by itself, without flags and variables; the certificates that it names must be there. Each mistake is named with its line, and the command then ends with 2.";
  static override examples = examples({
    "Before it is rolled out": "evreg config check evreg.config.yaml",
    "From stdin": "evreg config check - < evreg.config.yaml",
    "The configuration that applies here, variables included": "evreg config check",
    "Every mistake as JSON": "evreg config check evreg.config.yaml --json 2>&1 | jq .details.problems",
  });
  static override args = { file: optionalArg("The file to check; - for stdin.") };

  async run(): Promise<void> {
    const { args, flags } = await this.parse(ConfigCheck);
    const loaded = await loadChecked(args.file);
    const { config, warnings } = loaded;
    readCertificates(config);
    const data = { file: loaded.file ?? null, keys: [...loaded.places.keys()], warnings };
    const output = this.outputFor(flags);
    await output.record({ data }, CHECKED_RECORD);
    if (output.format === "table") {
      for (const warning of warnings) note(`Warning: ${escapeControlKeepingLines(warning)}`);
      note(warnings.length === 0 ? "No mistakes." : "No mistakes beside that.");
    }
  }
}

async function loadChecked(file: string | undefined): Promise<LoadedConfig> {
  const cwd = process.cwd();
  if (file === undefined) return loadConfig({ env: process.env, cwd });
  if (file !== "-") return loadConfig({ env: {}, cwd, configFile: file });
  return loadConfig({ env: {}, cwd, stdin: (await readInput(file)).toString("utf8") });
}

/**
 * A start needs them.
 * @throws EvregError `usage` naming the key and the file that cannot be used
 */
function readCertificates({ tls: { cert, key }, delivery: { ca } }: Config): void {
  if (cert !== undefined && key !== undefined) readCertificate({ cert, key });
  if (ca !== undefined) readAuthorities("delivery.ca", ca);
}

const CHECKED_RECORD: readonly Column<{ file: string | null; keys: readonly string[] }>[] = [
  { title: "File", value: ({ file }) => file ?? "none" },
  { title: "Sets", value: ({ keys }) => keys.join(", ") || "nothing" },
];

export class ConfigExample extends BaseCommand {
  static override summary = "Write a configuration file with every key, its default and what it is for.";
  static override description =
    "Unchanged, the file changes nothing. With --json the text is the member `data`.";
  static override examples = examples({
    "To read": "evreg config example | less",
    "To begin with": "evreg config example --output-file evreg.config.yaml",
  });
  static override flags = outputFileFlags;

  async run(): Promise<void> {
    const { flags } = await this.parse(ConfigExample);
    const text = exampleConfig();
    const { "output-file": path = "-", force } = flags;
    await (path === "-" ? this.outputFor(flags).plain(text) : writeFile(path, text, { force }));
  }
}

const HEAD = [
  "Every key of evreg with its default. Copy what you change to evreg.config.yaml in the folder evreg is started in, or to config.yaml in the data folder or beside it, or name a file with --config or EVREG_CONFIG.",
  "Flags win over variables, variables over the file, the file over these defaults. `null` means not set.",
];

/** A configuration file that holds every key with its default, and changes nothing. */
export function exampleConfig(): string {
  let text = HEAD.map((line) => comment(line, "")).join("");
  let before = "";
  for (const key of CONFIG_KEYS) {
    const { section, name } = key;
    text += "\n";
    if (section !== "" && section !== before) text += `${section}:\n`;
    before = section;
    const indent = section === "" ? "" : "  ";
    const value = typeof key.default === "string" ? key.default : JSON.stringify(key.default);
    text += `${comment(about(key), indent)}${indent}${name}: ${value}\n`;
  }
  return text;
}

/** What it is for, what it takes, and where else it can be set. */
function about({ path, kind, description, env, envAlias, flag }: ConfigKey): string {
  const { bounds, isList = false } = kind;
  const range = bounds === undefined || path === "port" ? "" : ` From ${bounds.join(" to ")}.`;
  const variable = envAlias === undefined ? env : `${env} or ${envAlias}`;
  const sources = flag === undefined ? variable : `--${flag}, ${variable}`;
  return `${description}${range} (${sources}${isList ? ", separated by commas" : ""})`;
}

function comment(text: string, indent: string): string {
  const start = `${indent}# `;
  return wrap(text, 120 - start.length)
    .map((line) => `${start}${line}\n`)
    .join("");
}
