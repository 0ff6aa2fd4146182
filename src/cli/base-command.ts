import { Command } from "@oclif/core";
import type { WarningMeta } from "../domain/action.ts";
import type { Evreg } from "../evreg.ts";
import { commonFlags, outputFlags, targetFlags } from "./flags.ts";
import { withMeantAction } from "./meant-action.ts";
import { rememberContext, rememberTarget } from "./next-command.ts";
import { note, Output, type OutputFormat } from "./output.ts";
import { printableLine } from "./printable.ts";
import { refusedFlag } from "./refused-flag.ts";
import type { Target, TargetNeeds } from "./target.ts";
import { tellChanges } from "./tell-changes.ts";
import { usage } from "./usage.ts";
import type { TargetFlags } from "./place.ts";

interface OutputChoice {
  readonly json?: boolean;
  readonly output?: OutputFormat | undefined;
}

/** What every command has: `--json` and `--output`. */
export abstract class PlainCommand extends Command {
  static override baseFlags: Partial<typeof commonFlags> & typeof outputFlags = outputFlags;

  /** Answers the exit code of the process. */
  abstract override run(): Promise<number>;

  /** Of `--active --no-active` the last one would win, whichever was meant. */
  protected override async init(): Promise<void> {
    await super.init();
    const end = this.argv.indexOf("--");
    const words = new Set(end === -1 ? this.argv : this.argv.slice(0, end));
    // Spread, as a command that names no flags has none of its own, whatever the type says.
    for (const [name, flag] of Object.entries({ ...this.ctor.flags })) {
      const both = flag.type === "boolean" && words.has(`--${name}`) && words.has(`--no-${name}`);
      if (both) throw usage(`--${name} and --no-${name}: give one of them.`);
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
export abstract class BaseCommand extends PlainCommand {
  static override baseFlags = commonFlags;
}

interface EvregNeeds extends Pick<TargetNeeds, "serverFor" | "creates"> {
  /** Shows what it would change before it does, which is only of use to who knows where. */
  readonly plans?: boolean;
}

/** A command that acts on an evreg: a server or a data folder, it does not ask which. */
export abstract class EvregCommand extends BaseCommand {
  static override baseFlags = { ...commonFlags, ...targetFlags };

  /** Opens the target, acts, and gives back what was held, also after a failure. */
  protected async withEvreg<T>(
    flags: TargetFlags & OutputChoice,
    act: (evreg: Evreg, target: Target) => Promise<T>,
    needs: EvregNeeds = {},
  ): Promise<T> {
    rememberTarget(flags);
    const { openTarget } = await import("./target.ts");
    const command = (this.id ?? "").replaceAll(":", " ");
    const { version, configDir: configFolder } = this.config;
    const { plans = false, ...others } = needs;
    const target = await openTarget(flags, { ...others, command, version, configFolder });
    const { evreg } = target;
    if (target.context !== undefined) rememberContext(target.context, target.where);
    try {
      return await act(this.tellingContext(target, flags, plans), target);
    } catch (error) {
      const isRead = this.outputFor(flags).format === "table";
      throw refusedFlag(isRead ? await withMeantAction(error, evreg) : error, flags, this.argv);
    } finally {
      await evreg.close();
    }
  }

  /** Stderr is left to errors where a program reads it. */
  private tellingContext({ evreg, context, where }: Target, flags: OutputChoice, atOnce: boolean): Evreg {
    const unread = this.outputFor(flags).format !== "table" && !process.stderr.isTTY;
    if (context === undefined || unread) return evreg;
    const tell = () => note(`On the context ${context} (${printableLine(where)}).`);
    if (!atOnce) return tellChanges(evreg, tell);
    tell();
    return evreg;
  }

  /** Warnings stand in the document of `--json`; every other output gets them on stderr. */
  protected tellWarnings(meta: WarningMeta | undefined, output: Output): void {
    if (output.format === "json") return;
    for (const { pointer, message } of meta?.warnings ?? []) {
      note(`Warning: ${printableLine(pointer === "" ? "schema" : pointer)}: ${printableLine(message)}`);
    }
  }
}
