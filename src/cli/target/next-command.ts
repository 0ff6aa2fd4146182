import { flagWords, escapeControl } from "../io/text.ts";

export interface TargetFlags {
  readonly url?: string | undefined;
  readonly context?: string | undefined;
  readonly token?: string | undefined;
  readonly "token-file"?: string | undefined;
  readonly data?: string | undefined;
  readonly config?: string | undefined;
}

/** The flags of the running command that say where it acts. */
let typed: TargetFlags = {};

export function setTarget(flags: TargetFlags): void {
  const { url, context: named, token, "token-file": tokenFile, data, config } = flags;
  typed = { url, context: named, token, "token-file": tokenFile, data, config };
  context = undefined;
}

/** The context that led to a server, and its address there. */
let context: { readonly name: string; readonly url: string } | undefined;

export function setContext(name: string, url: string): void {
  context = { name, url };
}

let schema: string | undefined;

/** What is read from stdin cannot be read again. */
export function setSchemaFile(path: string): void {
  schema = path === "-" ? undefined : path;
}

/** The file that the command took a schema from, if it can be read again. */
export function schemaFile(): string | undefined {
  return schema;
}

/** The command that gives the context this one acted on another token; `undefined` where it acted on none. */
export function renewContextCommand(): string | undefined {
  if (context === undefined) return undefined;
  return escapeControl(
    `evreg context add ${context.name}${flagWords({ url: context.url })} --token-file FILE --replace`,
  );
}

/**
 * A command for a person to type next, such as `evreg deliveries get 7 --data folder`: where this one acted, not where a
 * bare one would.
 * @param words without `evreg`
 */
export function nextCommand(words: string): string {
  return escapeControl(`evreg ${words}${flagWords(typed)}`);
}

/** As `nextCommand`, where the token that was used cannot do it. */
export function commandWithOtherToken(words: string): string {
  const { token: _token, "token-file": _file, ...rest } = typed;
  return escapeControl(`evreg ${words}${flagWords(rest)} --token-file FILE`);
}

/** The command that starts a server on the data folder this one acted on. */
export function serveCommand(): string {
  const { data, config } = typed;
  return escapeControl(`evreg serve${flagWords({ data, config })}`);
}
