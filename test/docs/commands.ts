import { blocksOf, codeIn, proseOf } from "./documents.ts";

/** A command of evreg as a document shows it. */
export interface ShownCommand {
  readonly page: string;
  readonly text: string;
  /** Up to its first flag. */
  readonly words: readonly string[];
  /** Without their values. */
  readonly flags: readonly string[];
}

const TOPICS = "actions|config|deliveries|events|replays|service|subscriptions|tokens";
/** `actions check --replay` in a sentence; a topic alone may be an ordinary word. */
const WITHOUT_PROGRAM = new RegExp(`^(?:${TOPICS}|deliveries) [a-z-]+(?: |$)`);

/** The commands of evreg in the blocks and sentences of a page. */
export function commandsIn(page: string): ShownCommand[] {
  const inBlocks = blocksOf(page)
    .filter(({ language }) => language === "sh" || language === "yaml")
    .flatMap(({ text }) => linesOf(text));
  const inSentences = codeIn(proseOf(page)).flatMap((code) =>
    WITHOUT_PROGRAM.test(code) ? [`evreg ${code}`] : [code],
  );
  return [...inBlocks, ...inSentences].flatMap((line) => {
    const [, text] = /^(?:[A-Z_]+=\S+ )*(?:npx (?:--prefix \S+ )?)?evreg(?: (.*))?$/.exec(line) ?? [];
    if (text === undefined) return [];
    const words = text.split(" ").filter((word) => word !== "");
    const firstFlag = words.findIndex((word) => /^-./.test(word));
    const flags = words.filter((word) => /^--?[a-z]/.test(word)).map((word) => word.replace(/=.*/, ""));
    return [{ page, text, words: firstFlag === -1 ? words : words.slice(0, firstFlag), flags }];
  });
}

/** The commands of a script, one each, without comments, texts in quotes and what a command reads. */
function linesOf(script: string): string[] {
  return script
    .replaceAll(/<<'EOF'([\s\S]*?)^EOF$/gm, "")
    .replaceAll(/\\\n\s*/g, "")
    .replaceAll(/'[^']*'|"[^"]*"/g, "TEXT")
    .split("\n")
    .map((line) => line.replace(/^\s*(?:- )?(?:run: )?/, "").replace(/ *(?:^|\s)#.*$/, ""))
    .flatMap((line) => line.split(/\s*(?:\||&&|;|<\()\s*/))
    .map((line) => line.replace(/\s*[>)].*$/, "").trim());
}
