import { Command } from "@oclif/core";
import type { WarningMeta } from "../domain/action.ts";
import type { Evreg } from "../evreg.ts";
import { commonFlags, targetFlags } from "./flags.ts";
import { rememberTarget } from "./next-command.ts";
import { note, Output, type OutputFormat } from "./output.ts";
import { printableLine } from "./printable.ts";
import { refusedFlag } from "./refused-flag.ts";
import type { TargetFlags, TargetNeeds } from "./target.ts";
import { usage } from "./usage.ts";

/** What every command has: `--json`, `--output`, `--data`, `--config`. */
export abstract class BaseCommand extends Command {
  static override baseFlags = commonFlags;

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

  protected outputFor(flags: { json?: boolean; output?: OutputFormat | undefined }): Output {
    return new Output(flags.json === true ? "json" : (flags.output ?? "table"));
  }

  /** oclif would print the error itself, with a stack; `main` reports all failures in one form. */
  protected override catch(error: Error): Promise<never> {
    return Promise.reject(error);
  }
}

/** A command that acts on an evreg: a server or a data folder, it does not ask which. */
export abstract class EvregCommand extends BaseCommand {
  static override baseFlags = { ...commonFlags, ...targetFlags };

  /** Opens the target, acts, and gives back what was held, also after a failure. `place` is that of `Target`. */
  protected async withEvreg<T>(
    flags: TargetFlags,
    act: (evreg: Evreg, place: string) => Promise<T>,
    needs: Pick<TargetNeeds, "serverFor" | "createsFolder"> = {},
  ): Promise<T> {
    rememberTarget(flags);
    const { openTarget } = await import("./target.ts");
    const command = (this.id ?? "").replaceAll(":", " ");
    const { evreg, place } = await openTarget(flags, { ...needs, command, version: this.config.version });
    try {
      return await act(evreg, place);
    } catch (error) {
      throw refusedFlag(error, flags);
    } finally {
      await evreg.close();
    }
  }

  /** Warnings stand in the document of `--json`; every other output gets them on stderr. */
  protected tellWarnings(meta: WarningMeta | undefined, output: Output): void {
    if (output.format === "json") return;
    for (const { pointer, message } of meta?.warnings ?? []) {
      note(`Warning: ${printableLine(pointer === "" ? "schema" : pointer)}: ${printableLine(message)}`);
    }
  }
}
