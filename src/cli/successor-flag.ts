import { Flags } from "@oclif/core";

/** For commands that end an action, and with --undo take that back. */
export const successorFlag = Flags.string({
  summary: "The action to publish to instead.",
  helpValue: "NAME",
  exclusive: ["undo"],
});
