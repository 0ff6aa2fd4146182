import { wrap } from "../text-width.ts";

/** What `evreg help` tells about beside the commands. */
export const HELP_TOPICS = ["exit-codes", "environment", "signatures"] as const;

export type HelpTopic = (typeof HELP_TOPICS)[number];

export function isHelpTopic(name: string): name is HelpTopic {
  return (HELP_TOPICS as readonly string[]).includes(name);
}

/** @param width cells of a line */
export async function helpOn(topic: HelpTopic, width: number): Promise<string> {
  const wrapped = (text: string, indent: number): string =>
    wrap(text, width - indent)
      .map((line) => `${" ".repeat(indent)}${line}\n`)
      .join("");
  switch (topic) {
    case "exit-codes":
      return (await import("./exit-codes.ts")).exitCodes(wrapped);
    case "environment":
      return (await import("./environment.ts")).environment(wrapped);
    case "signatures":
      return (await import("./signatures.ts")).SIGNATURES;
  }
}
