import { Command } from "@oclif/core";
import { nearest } from "../config/values.ts";
import type { WarningMeta } from "../domain/action.ts";
import { EvregError } from "../domain/error.ts";
import { ISO_TIME_EXPECTED } from "../domain/formats.ts";
import type { Evreg } from "../evreg.ts";
import { commonFlags, outputFlags, targetFlags } from "./flags.ts";
import { note, Output, type OutputFormat } from "./io/output.ts";
import { escapeControl } from "./io/text.ts";
import { setContext, setTarget } from "./target/next-command.ts";
import type { TargetFlags } from "./target/next-command.ts";
import type { Target, TargetNeeds } from "./target/target.ts";
import { usageError } from "./usage-errors.ts";

/** Operations that change nothing. Any other does, or may. */
const READS = new Set(["list", "get", "revisions", "revision", "check", "deliveries", "count"]);

type Method = (...args: unknown[]) => unknown;

/** The same port, which calls `announce` before the first operation that may change something. */
function announceBeforeWrite(evreg: Evreg, announce: () => void): Evreg {
  let isAnnounced = false;
  const announcing =
    (method: Method): Method =>
    (...args) => {
      if (!isAnnounced) announce();
      isAnnounced = true;
      return method(...args);
    };
  const nouns = Object.entries(evreg).filter(([, part]) => typeof part === "object");
  const parts = nouns.map(([noun, port]) => {
    const methods = Object.entries(port as Record<string, Method>).map(([name, method]) => [
      name,
      READS.has(name) ? method : announcing(method),
    ]);
    return [noun, Object.fromEntries(methods)];
  });
  return { ...evreg, ...Object.fromEntries(parts) } as Evreg;
}

/** The flag whose file holds such a member. */
const FILE_OF: Readonly<Record<string, string>> = { schemata: "schema", filter: "filter" };
/** Members of the API that a flag of another name sets. */
const FLAG_OF: Readonly<Record<string, string>> = { scopes: "scope", expires_at: "expires" };

/**
 * A refusal of a typed value as the mistake on the command line that it is, a flag's under the flag's name; any other error
 * as it came, but for the name of the file that a schema came from. Local or remote makes no difference: the refusal is the same.
 * @param flags the command's, with only those that were typed defined
 * @param words of the command line, as they were typed
 */
function asFlagError(error: unknown, flags: object, words: readonly string[]): unknown {
  if (!(error instanceof EvregError) || (error.code !== "malformed" && error.code !== "invalid"))
    return error;
  const { field, message, value } = error.details;
  // A payload's own members have a longer message, and may be called as a flag is.
  if (typeof field !== "string" || typeof message !== "string" || error.message !== `${field}: ${message}`) {
    return error;
  }
  const file = fileOf(field, flags);
  if (file !== undefined) return new EvregError(error.code, `${file}: ${error.message}`, error.details);
  const member = field.replace(/\[\d+\]$/, "");
  const flag = FLAG_OF[member] ?? member.replaceAll("_", "-");
  const typed = Object.hasOwn(flags, flag) ? (flags as Record<string, unknown>)[flag] : undefined;
  if (typed === undefined) {
    return words.some((word) => isRefusedWord(word, value))
      ? usageError(error.message, error.details)
      : error;
  }
  // A number comes back from a server as the text it was sent as.
  const isAnnounced =
    message === ISO_TIME_EXPECTED && TAKES_DATES.has(flag) ? `${message}; ${OR_A_DATE}` : message;
  const shown = typeof typed === "number" ? typed : value;
  return usageError(`--${flag}: ${isAnnounced}`, { flag, message: isAnnounced, value: shown });
}

/** Whether a refusal's value is that word, which it holds the beginning of where that is long. */
function isRefusedWord(word: string, value: unknown): boolean {
  const shown = String(value);
  return word === shown || (shown.endsWith("…") && word.startsWith(shown.slice(0, -1)));
}

/** Flags whose text may be a date, see `timeFlag`. */
const TAKES_DATES = new Set(["from", "to"]);
const OR_A_DATE = "or a date alone, such as 2026-01-31, for its 00:00 UTC";

/** The file with the place at fault, for a person: what is wrong in it is no mistake on the command line. */
function fileOf(field: string, flags: object): string | undefined {
  const [root = ""] = field.split(/[.[]/);
  const path = (flags as Record<string, unknown>)[FILE_OF[root] ?? ""];
  if (typeof path !== "string") return undefined;
  return path === "-" ? "stdin" : path;
}

// Local or remote, the sentence is the same.
const NO_ACTION = /^There is no action (".+")\.$/;

/** Adds the action that was probably meant to an error that says there is no such action; returns any other error as it is. */
async function suggestAction(error: unknown, evreg: Evreg): Promise<unknown> {
  if (!(error instanceof EvregError) || error.code !== "not_found") return error;
  const quoted = NO_ACTION.exec(error.message)?.[1];
  if (quoted === undefined) return error;
  try {
    const { data } = await evreg.actions.list();
    const names = data.map(({ action }) => action);
    const meant = nearest(String(JSON.parse(quoted)), names);
    if (meant === undefined) return error;
    const message = `${error.message} Did you mean ${meant}?`;
    return new EvregError(error.code, message, error.details, { cause: error });
  } catch {
    // A token may publish and not read. The first error is reported all the same.
    return error;
  }
}

interface ListFilters {
  readonly action?: string | undefined;
  readonly event?: number | undefined;
  readonly subscription?: number | undefined;
}

/**
 * What to say of an empty listing. A name or number that does not exist gives one too, and is probably a mistake.
 * @param sentence that nothing matches
 */
export async function emptyListHint(sentence: string, evreg: Evreg, query: ListFilters): Promise<string> {
  const { action, event, subscription } = query;
  try {
    if (action !== undefined) await evreg.actions.get(action);
    if (event !== undefined) await evreg.events.get(event);
    if (subscription !== undefined) await evreg.subscriptions.get(subscription);
  } catch (error) {
    if (error instanceof EvregError && error.code === "not_found") {
      const isAnnounced = await suggestAction(error, evreg);
      return `${sentence} ${isAnnounced instanceof EvregError ? isAnnounced.message : error.message}`;
    }
    // Only a hint failed; the listing itself went well.
  }
  return sentence;
}

interface OutputChoice {
  readonly json?: boolean;
  readonly output?: OutputFormat | undefined;
}

/** What every command has: `--json` and `--output`. */
export abstract class BaseCommand extends Command {
  static override baseFlags: Partial<typeof commonFlags> & typeof outputFlags = outputFlags;

  /** Answers the exit code of the process, if it is not 0. */
  abstract override run(): Promise<number | void>;

  /** oclif would take the last one of `--active --no-active`. */
  protected override async init(): Promise<void> {
    await super.init();
    const end = this.argv.indexOf("--");
    const words = new Set(end === -1 ? this.argv : this.argv.slice(0, end));
    // Spread, as a command that names no flags has none of its own, whatever the type says.
    for (const [name, flag] of Object.entries({ ...this.ctor.flags })) {
      const both = flag.type === "boolean" && words.has(`--${name}`) && words.has(`--no-${name}`);
      if (both) throw usageError(`--${name} and --no-${name}: give one of them.`);
    }
  }

  protected outputFor(flags: OutputChoice): Output {
    return new Output(flags.json === true ? "json" : (flags.output ?? "table"));
  }

  /** oclif would print the error itself, with a stack; `main` reports all failures in one form. */
  protected override catch(error: Error): Promise<never> {
    return Promise.reject(error);
  }
}

/** A command with settings: `--data` and `--config` as well. */
export abstract class ConfigCommand extends BaseCommand {
  static override baseFlags = commonFlags;
}

interface CommandNeeds extends Pick<TargetNeeds, "serverFor" | "creates"> {
  /** Shows what it would change before it does, which is only of use to who knows where. */
  readonly announceAtOnce?: boolean;
}

/** A command that acts on an evreg: a server or a data folder, it does not ask which. */
export abstract class TargetCommand extends ConfigCommand {
  static override baseFlags = { ...commonFlags, ...targetFlags };

  /** Opens the target, acts, and gives back what was held, also after a failure. */
  protected async withTarget<T>(
    flags: TargetFlags & OutputChoice,
    act: (evreg: Evreg, target: Target) => Promise<T>,
    needs: CommandNeeds = {},
  ): Promise<T> {
    setTarget(flags);
    const { openTarget } = await import("./target/target.ts");
    const command = (this.id ?? "").replaceAll(":", " ");
    const { version, configDir: configFolder } = this.config;
    const { announceAtOnce: plans = false, ...others } = needs;
    const target = await openTarget(flags, { ...others, command, version, configFolder });
    const { evreg } = target;
    if (target.context !== undefined) setContext(target.context, target.location);
    try {
      return await act(this.announcingContext(target, flags, plans), target);
    } catch (error) {
      const isRead = this.outputFor(flags).format === "table";
      throw asFlagError(isRead ? await suggestAction(error, evreg) : error, flags, this.argv);
    } finally {
      await evreg.close();
    }
  }

  /** Stderr is left to errors where a program reads it. */
  private announcingContext(
    { evreg, context, location: where }: Target,
    flags: OutputChoice,
    atOnce: boolean,
  ): Evreg {
    const unread = this.outputFor(flags).format !== "table" && !process.stderr.isTTY;
    if (context === undefined || unread) return evreg;
    const announce = () => note(`On the context ${context} (${escapeControl(where)}).`);
    if (!atOnce) return announceBeforeWrite(evreg, announce);
    announce();
    return evreg;
  }

  /** Warnings stand in the document of `--json`; every other output gets them on stderr. */
  protected printWarnings(meta: WarningMeta | undefined, output: Output): void {
    if (output.format === "json") return;
    for (const { pointer, message } of meta?.warnings ?? []) {
      note(`Warning: ${escapeControl(pointer === "" ? "schema" : pointer)}: ${escapeControl(message)}`);
    }
  }
}
