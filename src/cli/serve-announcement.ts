import { relative } from "node:path";
import { styleText } from "node:util";

export interface Announcement {
  readonly version: string;
  readonly url: string;
  /** Each `address:port` it answers at, wildcards and loopback among them. */
  readonly addresses: readonly string[];
  /** Absolute. */
  readonly data: string;
  readonly dev: boolean;
  /** The file its configuration came from, if any did. */
  readonly configFile: string | undefined;
  readonly tokenFile: string | undefined;
  readonly needsToken: boolean;
  /** The context that commands act on where nothing else is told, if there is one. */
  readonly context: string | undefined;
  /** Whether there is any action yet beside evreg's own; without one, creating it is the next step. */
  readonly hasActions: boolean;
  readonly cwd: string;
  /** How this program is called here: `evreg`, or `npx evreg` in a checkout. */
  readonly program: string;
}

/** What a person who just started a server wants to know. Never the token itself, only where it is. */
export function announcement(about: Announcement): string {
  const { url, data, tokenFile, program, cwd, context } = about;
  const missing = about.needsToken
    ? "one of those that were made; without any, stop this and run evreg tokens create with --data"
    : "none needed";
  const access = tokenFile === undefined ? missing : `in the file ${tokenFile}`;
  // A command in the same folder finds the server by itself; elsewhere it has to be told the data folder.
  const found = relative(cwd, data) === ".evreg" && context === undefined;
  const place = found ? "" : ` --data ${quoted(data)}`;
  const next = about.hasActions
    ? `${program} events${place}`
    : // Not a name of the README's tour, which creates its own.
      `echo '{"type": "object"}' | ${program} actions create hello.said --application hello --schema -${place}`;
  const others = about.addresses.filter(
    (address) => !OF_THIS_MACHINE.test(address) && !url.endsWith(`/${address}`),
  );
  return [
    `${bold(`evreg ${about.version}`)} listens on ${bold(url)}${about.dev ? ", for this machine only (--dev)" : ""}`,
    ...(others.length === 0 ? [] : [`  also   ${others.join(", ")}`]),
    `  data   ${data}`,
    ...(about.configFile === undefined ? [] : [`  config ${about.configFile}`]),
    `  token  ${access}`,
    ...(context === undefined
      ? []
      : [`Your context ${context} is in use: without --data or --url, commands act on that one.`]),
    `Next, in another terminal${place === "" ? " in this folder" : ""}:`,
    `  ${next}`,
    "Ctrl-C stops it.",
    "",
  ].join("\n");
}

/** Wildcards and loopback: no way for another machine to come. */
const OF_THIS_MACHINE = /^(?:0\.0\.0\.0|127(?:\.\d+){3}|\[::1?\]):/;

function bold(text: string): string {
  return styleText("bold", text, { stream: process.stderr });
}

function quoted(path: string): string {
  return /^[\w./~-]+$/.test(path) ? path : `'${path.replaceAll("'", `'\\''`)}'`;
}
