import { BaseCommand, ConfigCommand, examples } from "../cli/base-command.ts";
import type { Column } from "../cli/io/table.ts";
import { wrap } from "../cli/io/text.ts";
import { readSettings } from "../cli/target/target.ts";
import { type Config, CONFIG_KEYS, type ConfigKey } from "../config/keys.ts";
import { type ShownKey, shownKeys } from "../config/values.ts";
import { readAuthorities, readCertificate } from "../runtime/certificate.ts";

export class ConfigShow extends ConfigCommand {
  static override aliases = ["config"];
  static override summary = "Show the configuration that applies here, and where each value comes from.";
  static override description =
    "Shows what evreg serve would use here. Of a secret it shows only that it is set. If the configuration has mistakes, the command names each with its line and ends with 2; so it does where a certificate or a key that it names cannot be used.";
  static override examples = examples("evreg config", {
    "Of a server with other settings": "EVREG_PORT=8080 evreg config --data /var/lib/evreg",
    "Check a file before it is rolled out": "evreg config --config evreg.config.yaml",
    "Every mistake as JSON": "evreg config --config evreg.config.yaml --json 2>&1 | jq .details.problems",
    "What is not at its default": "evreg config --json | jq '.data[] | select(.source != \"default\")'",
  });

  async run(): Promise<void> {
    const { flags } = await this.parse(ConfigShow);
    const loaded = await readSettings(flags);
    const answer = { data: shownKeys(loaded), meta: { file: loaded.file ?? null } };
    await this.outputFor(flags).list(answer, KEY_LIST, "");
    readCertificates(loaded.config);
  }
}

/**
 * A start needs them.
 * @throws EvregError `usage` naming the key and the file that cannot be used
 */
function readCertificates({ tls: { cert, key }, delivery: { ca } }: Config): void {
  if (cert !== undefined && key !== undefined) readCertificate({ cert, key });
  if (ca !== undefined) readAuthorities("delivery.ca", ca);
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

export class ConfigExample extends BaseCommand {
  static override summary = "Write a configuration file with every key, its default and what it is for.";
  static override description =
    "Unchanged, the file changes nothing. With --json the text is the member `data`.";
  static override examples = examples({
    "To read": "evreg config example | less",
    "To begin with": "evreg config example > evreg.config.yaml",
  });

  async run(): Promise<void> {
    const { flags } = await this.parse(ConfigExample);
    await this.outputFor(flags).plain(exampleConfig());
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
