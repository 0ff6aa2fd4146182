import { existsSync } from "node:fs";
import { Command, type Interfaces } from "@oclif/core";
import type { WarningMeta } from "../domain/action.ts";
import { EvregError } from "../domain/error.ts";
import type { Answer, Evreg } from "../evreg.ts";
import { commonFlags, type MemberFlag, outputFlags, targetFlags } from "./flags.ts";
import { note, Output, type OutputFormat } from "./io/output.ts";
import type { Column } from "./io/table.ts";
import { escapeControl } from "./io/text.ts";
import { pathNamed } from "../json/field-path.ts";
import { faultInSchema, isItself } from "./schema-file.ts";
import { setTarget } from "./target/next-command.ts";
import type { TargetFlags } from "./target/next-command.ts";
import type { Target, TargetNeeds } from "./target/target.ts";
import { usageError } from "./usage-errors.ts";

/**
 * Words the refusal of a value that was typed as the mistake on the command line that it is. What is wrong in a file gets
 * the file's name; any other error stays as it is.
 * @param shapes the command's flags
 * @param flags what was typed of them
 * @param words of the command line, as they were typed
 */
function asFlagError(
  error: unknown,
  shapes: Readonly<Record<string, MemberFlag>>,
  flags: Readonly<Record<string, unknown>>,
  words: readonly string[],
): unknown {
  if (!(error instanceof EvregError) || (error.code !== "malformed" && error.code !== "invalid"))
    return error;
  const { field, message, value, errors } = error.details;
  // A payload's own members may be called as a flag is.
  if (typeof field !== "string" || typeof message !== "string" || errors !== undefined) return error;
  const [top, ...inner] = pathNamed(field);
  const [flag, shape] =
    Object.entries(shapes).find(
      ([name, { member = name.replaceAll("-", "_") }]) => member === top && flags[name] !== undefined,
    ) ?? [];
  const [typed] = flag === undefined ? [] : [flags[flag]].flat();
  const mayBeFile = shape?.type === "option" && /\bFILE\b/.test(String(shape.helpValue));
  if (mayBeFile && typeof typed === "string" && (typed === "-" || isItself(typed) || existsSync(typed))) {
    return new EvregError(error.code, faultInSchema(typed, `--${flag}`, field, message), error.details);
  }
  const names = inner.filter((step) => typeof step === "string");
  if (flag === undefined || (mayBeFile && names.length > 0)) {
    const text = String(value);
    // A long value is reported by its beginning.
    const start = text.endsWith("…") ? text.slice(0, -1) : undefined;
    const isTyped = words.some((word) => word === text || (start !== undefined && word.startsWith(start)));
    return isTyped ? usageError(error.message, error.details) : error;
  }
  const rule = [...names, message].join(": ");
  return usageError(`--${flag}: ${rule}`, { flag, message: rule, value });
}

/** Examples for help: commands alone, and commands by what they are for. */
export function examples(...all: readonly (string | Readonly<Record<string, string>>)[]): Command.Example[] {
  return all.flatMap((one): Command.Example[] => {
    if (typeof one === "string") return [one];
    return Object.entries(one).map(([description, command]) => ({ description, command }));
  });
}

interface OutputChoice {
  readonly json?: boolean;
  readonly output?: OutputFormat | undefined;
}

type Values = Record<string, unknown>;

/** What every command has: `--json` and `--output`. */
export abstract class BaseCommand extends Command {
  static override baseFlags: Partial<typeof commonFlags> & typeof outputFlags = outputFlags;
  /** Where a command has none of its own, oclif would leave this undefined. */
  static override flags: typeof Command.flags = {};

  /** Answers the exit code of the process, if it is not 0. */
  abstract override run(): Promise<number | void>;

  protected outputFor(flags: OutputChoice): Output {
    return new Output(flags.json === true ? "json" : (flags.output ?? "table"));
  }

  /** From here on, what a person is to type next acts where this command does. */
  protected override async parse<F extends Values, B extends Values, A extends Values>(
    options?: Interfaces.Input<F, B, A>,
    words?: string[],
  ): Promise<Interfaces.ParserOutput<F, B, A>> {
    const parsed = await super.parse(options, words);
    setTarget(parsed.flags as TargetFlags);
    return parsed;
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

type CommandNeeds = Pick<TargetNeeds, "serverFor" | "creates">;

/** A command that acts on an evreg: a server or a data folder, it does not ask which. */
export abstract class TargetCommand extends ConfigCommand {
  static override baseFlags = { ...commonFlags, ...targetFlags };

  /** Opens the target, acts, and closes it, also after a failure. */
  protected async withTarget<T>(
    flags: TargetFlags & OutputChoice,
    act: (evreg: Evreg, target: Target) => Promise<T>,
    needs: CommandNeeds = {},
  ): Promise<T> {
    const { openTarget } = await import("./target/target.ts");
    const command = (this.id ?? "").replaceAll(":", " ");
    const { version } = this.config;
    const target = await openTarget(flags, { ...needs, command, version });
    try {
      return await act(target.evreg, target);
    } catch (error) {
      throw asFlagError(error, this.ctor.flags, { ...flags }, this.argv);
    } finally {
      await target.evreg.close();
    }
  }

  /** Makes one call and prints the record that it answers, with its warnings. */
  protected async showRecord<T>(
    flags: TargetFlags & OutputChoice,
    columns: readonly Column<T>[],
    call: (evreg: Evreg) => Promise<Answer<T, object | undefined>>,
    needs?: CommandNeeds,
  ): Promise<Output> {
    const answer = await this.withTarget(flags, call, needs);
    const output = this.outputFor(flags);
    await output.record(answer, columns);
    // The document of --json has them itself.
    if (output.format === "json") return output;
    const { warnings = [] }: Partial<WarningMeta> = answer.meta ?? {};
    for (const { pointer, message } of warnings) {
      note(`Warning: ${escapeControl(pointer === "" ? "schema" : pointer)}: ${escapeControl(message)}`);
    }
    return output;
  }
}
