import { wrap } from "../io/text.ts";

/** The topics of `evreg help` beside the commands. */
const TOPICS = {
  "getting-started": async () => {
    const { GETTING_STARTED } = await import("./guides.ts");
    return () => GETTING_STARTED;
  },
  "delivery-states": async () => (await import("./reference.ts")).deliveryStates,
  signatures: async () => {
    const { SIGNATURES } = await import("./guides.ts");
    return () => SIGNATURES;
  },
  "exit-codes": async () => (await import("./reference.ts")).exitCodes,
  environment: async () => (await import("./reference.ts")).environment,
} as const satisfies Readonly<Record<string, () => Promise<(wrapped: Wrapped) => string>>>;

/** Breaks a paragraph into lines, each behind so many spaces. */
type Wrapped = (text: string, indent: number) => string;

export type HelpTopic = keyof typeof TOPICS;

export const HELP_TOPICS = Object.keys(TOPICS) as readonly HelpTopic[];

export function isHelpTopic(name: string): name is HelpTopic {
  return Object.hasOwn(TOPICS, name);
}

/** @param width cells of a line */
export async function helpOn(topic: HelpTopic, width: number): Promise<string> {
  const text = await TOPICS[topic]();
  return text((paragraph, indent) =>
    wrap(paragraph, width - indent)
      .map((line) => `${" ".repeat(indent)}${line}\n`)
      .join(""),
  );
}
