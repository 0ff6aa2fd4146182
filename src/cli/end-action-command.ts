import { Flags } from "@oclif/core";
import { EvregCommand } from "./base-command.ts";
import { ACTION_CHANGED } from "./columns/actions.ts";
import { EXIT } from "./exit-code.ts";
import { given, textArg } from "./flags.ts";

/** @param undone what `--undo` does */
export function endFlags(undone: string) {
  return {
    successor: Flags.string({
      summary: "The action to publish to instead.",
      helpValue: "NAME",
      exclusive: ["undo"],
    }),
    undo: Flags.boolean({ summary: undone }),
  };
}

/**
 * A command that ends an action, in part or wholly, and takes that back with `--undo`. It names its arguments and flags
 * again, as oclif reads only those that are a command's own.
 */
export abstract class EndActionCommand extends EvregCommand {
  static override args = { name: textArg("Name of the action.") };
  static override flags = endFlags("Not ended any more.");

  /** The setting of the action that it turns on. */
  protected abstract readonly setting: "deprecated" | "retired";

  async run(): Promise<number> {
    const { args, flags } = await this.parse(this.ctor as typeof EndActionCommand);
    const change = { [this.setting]: !flags.undo, ...given({ successor: flags.successor }) };
    const answer = await this.withEvreg(flags, (evreg) => evreg.actions.update(args.name, change));
    await this.outputFor(flags).record(answer, ACTION_CHANGED);
    return EXIT.done;
  }
}
