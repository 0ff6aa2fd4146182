import { basename, relative, resolve } from "node:path";
import { isSea } from "node:sea";
import { shellWord } from "../../domain/formats.ts";
import { flagWords, escapeControl } from "../io/text.ts";

export interface TargetFlags {
  readonly url?: string | undefined;
  readonly token?: string | undefined;
  readonly "token-file"?: string | undefined;
  readonly data?: string | undefined;
  readonly config?: string | undefined;
}

const NAME = "evreg";

/** The file of a checkout that is executable, see bin/run.js. */
const ENTRY = "run.js";

/**
 * How a person types the program: `./evreg` for an executable in a folder, `npx evreg` where that started it, and the path of a
 * checkout's entry where a shell says that it was typed (`_`).
 */
export function programName(): string {
  const {
    npm_lifecycle_event: event,
    npm_lifecycle_script: script = "",
    npm_config_local_prefix: prefix,
    _: typedPath = "",
  } = process.env;
  // The name is that of Node where it runs a script.
  const { argv0 } = process;
  if (isSea()) return /[/\\]/.test(argv0) ? escapeControl(shellWord(argv0)) : NAME;
  const isStartedByNpm = event === "npx" ? /^["']?evreg\b/.test(script) : event === "start";
  if (!isStartedByNpm) {
    const isEntry = basename(typedPath) === ENTRY && resolve(typedPath) === process.argv[1];
    return isEntry ? escapeControl(shellWord(typedPath)) : NAME;
  }
  const isElsewhere = prefix !== undefined && relative(prefix, process.cwd()).startsWith("..");
  return isElsewhere ? escapeControl(`npx --prefix ${shellWord(prefix)} ${NAME}`) : `npx ${NAME}`;
}

/** The flags of the running command that say where it acts. */
let typed: TargetFlags = {};
/** Those of a server on the data folder that it acts on. */
let serveFlags = "";

export function setTarget(flags: TargetFlags): void {
  const { url, token, "token-file": tokenFile, data, config } = flags;
  typed = { url, token, "token-file": tokenFile, data, config };
  serveFlags = "";
}

/** Says whether only servers with `--dev` have had the data folder. */
export function setForDevelopment(isSo: boolean): void {
  serveFlags = isSo ? " --dev" : "";
}

/**
 * A command for a person to type next, such as `evreg deliveries get 7 --data folder`: where this one acted, not where a
 * bare one would.
 * @param words without `evreg`
 */
export function nextCommand(words: string): string {
  return escapeControl(`${programName()} ${words}${flagWords(typed)}`);
}

/** The command that starts a server on the data folder this one acted on. @param flags more of it, such as ` --dev` */
export function serveCommand(flags = serveFlags): string {
  const { data, config } = typed;
  return escapeControl(`${programName()} serve${flags}${flagWords({ data, config })}`);
}

/** A command that acts nowhere, such as `evreg tokens create --help`. @param words without `evreg` */
export function plainCommand(words: string): string {
  return `${programName()} ${words}`;
}

/**
 * A sentence of evreg's whose commands, in backticks, act where this one did: who wrote it knows nothing of the flags that led
 * there.
 */
export function withTarget(sentence: string): string {
  return sentence.replace(/`evreg ([^`]+)`/g, (whole, words: string) => {
    const { data, config } = typed;
    // They take no server and no token; the configuration has the address of the database and the key of the secrets.
    if (/^(?:move|restore)\b/.test(words)) {
      const namesPlace = /^move\b| --data\b/.test(words);
      const place = flagWords(namesPlace ? { config } : { data, config });
      return escapeControl(`\`${programName()} ${words}${place}\``);
    }
    if (/ --(?:data|url|help)\b/.test(words)) return whole.replace(NAME, programName());
    const [, flags] = /^serve\b(.*)$/.exec(words) ?? [];
    return `\`${flags === undefined ? nextCommand(words) : serveCommand(flags || undefined)}\``;
  });
}
