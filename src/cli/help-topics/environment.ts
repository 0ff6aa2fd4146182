import { CONFIG_FILE_ENV, CONFIG_KEYS, CONTEXT_ENV, type ConfigKey } from "../../config/schema.ts";

const ENVIRONMENT_HEAD =
  "Variables that evreg reads. A flag goes before a variable, a variable before the configuration file. One that is set to nothing counts as not set; one that begins with EVREG_ and means nothing is a mistake (exit code 2). `evreg config` shows what is in force.";

/** Those that are no key of the configuration. */
const OTHERS: readonly (readonly [name: string, about: string])[] = [
  [CONFIG_FILE_ENV, "The configuration file to read (--config)."],
  [CONTEXT_ENV, "The context to act on (--context); see evreg context."],
  ["EVREG_CONFIG_DIR", "The folder for what evreg keeps for you: your contexts. Not set: ~/.config/evreg."],
  [
    "EVREG_CACHE_DIR",
    "The folder where the single executable may put the database engine that it loads; the first start writes it. Not set: the first that can hold a program of evreg in CACHE_DIRECTORY, XDG_CACHE_HOME and ~/.cache, then evreg-<user id> in XDG_RUNTIME_DIR, the folder for temporary files, /var/tmp and /dev/shm.",
  ],
  ["EVREG_DEBUG", "1: show where in evreg a fault of its own arose."],
  ["STATE_DIRECTORY", "The data folder where none is named; systemd sets it."],
  ["NO_COLOR", "Set to anything: no colours."],
  ["COLUMNS", "Cells of a line in tables, instead of the terminal's."],
];

export function environment(wrapped: (text: string, indent: number) => string): string {
  const keys = CONFIG_KEYS.map((key) => [key.env, about(key)] as const);
  const entries = [...keys, ...OTHERS].map(([name, text]) => `${name}\n${wrapped(text, 4)}`);
  return `${wrapped(ENVIRONMENT_HEAD, 0)}\n${entries.join("")}`;
}

function about({ path, description, default: initial, env, envAlias, flag, secret }: ConfigKey): string {
  // Said of the file, which this is not about.
  const parts = [description.replace(/ Better given by \S+ than here\./, "")];
  if (initial !== null && !Array.isArray(initial)) parts.push(`Default: ${String(initial)}.`);
  if (secret === true) parts.push(`${env}_FILE names a file that holds it.`);
  const others = [flag === undefined ? [] : `--${flag}`, envAlias ?? [], path].flat();
  return `${parts.join(" ")} (${others.join(", ")})`;
}
