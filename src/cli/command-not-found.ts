import type { Hook } from "@oclif/core";
import { usage } from "./usage.ts";

/** oclif calls this for words that are no command; what it throws is what the user gets to read. */
const commandNotFound: Hook<"command_not_found"> = function ({ id, config }) {
  const words = id.split(":");
  if (id.startsWith("-")) {
    throw usage(`Name the command before its flags: evreg COMMAND ${words.join(" ")}`);
  }
  const topic = words[0] ?? "";
  const siblings = config.commandIDs
    .filter((other) => other.startsWith(`${topic}:`))
    .map((other) => other.slice(topic.length + 1));
  if (words.length > 1 && siblings.length > 0) {
    throw usage(
      `There is no command ${JSON.stringify(words.join(" "))}; ${topic} has: ${siblings.join(", ")}.`,
    );
  }
  const known = new Set(config.commandIDs.map((other) => other.split(":")[0] ?? ""));
  throw usage(`There is no command ${JSON.stringify(topic)}; there are: ${[...known].join(", ")}.`);
};

export default commandNotFound;
