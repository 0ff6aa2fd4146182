import { homedir } from "node:os";

/** The words of a simple command as a shell sees them; behind a space the last one is empty. */
export function wordsOf(line: string): string[] {
  const words: string[] = [];
  const word = /(?:[^\s"'\\]|\\.?|"(?:[^"\\]|\\.)*(?:"|$)|'[^']*(?:'|$))+|\s+$/gsy;
  for (let at = 0; at < line.length; at = word.lastIndex) {
    at += /^\s*(?=\S)/.exec(line.slice(at))?.[0].length ?? 0;
    word.lastIndex = at;
    const [found = ""] = word.exec(line) ?? [];
    if (found === "") break;
    words.push(found.trim() === "" ? "" : found);
  }
  return words;
}

/** A word as the program would get it, but for variables and commands in it. */
export function unquoted(word: string): string {
  const text = word.replaceAll(
    /'([^']*)'?|"((?:[^"\\]|\\.)*)"?|\\(.)|\\$/gs,
    (_, single: string | undefined, double: string | undefined, one: string | undefined) =>
      single ?? double?.replaceAll(/\\(["\\$`])/g, "$1") ?? one ?? "",
  );
  return word.startsWith("~/") ? `${homedir()}${text.slice(1)}` : text;
}
