import type { Hook } from "@oclif/core";
import { flagsFirst, unknownCommand } from "./unknown-command.ts";

/** oclif calls this for words that are no command; what it throws is what the user gets to read. */
const commandNotFound: Hook<"command_not_found"> = function ({ id, argv = [], config }) {
  throw id.startsWith("-") ? flagsFirst([id, ...argv], config) : unknownCommand(id, config);
};

export default commandNotFound;
