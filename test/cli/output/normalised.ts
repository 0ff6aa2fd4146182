import type { World } from "./world.ts";

/** Without what differs from run to run: each time, secret and place as a word for it, of the same length where it has one. */
export function normalised(text: string, { folder, url }: World): string {
  return (
    text
      .replaceAll(url, "<server>")
      .replaceAll(folder, "<folder>")
      .replaceAll(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, "<time, ISO 8601, in UTC>")
      .replaceAll(/whsec_[\w+/=]{44}/g, "whsec_<secret>")
      .replaceAll(/\b[\da-f]{32}\b/g, "<data id, 32 hexadecimal digits>")
      .replaceAll(/evreg_\w{36}/g, "evreg_<token>")
      .replaceAll(/("\w+_ms":)[\d.]+/g, "$1<ms>")
      // The table of attempts.
      .replaceAll(/(STARTED) +MS +| (\S+ in UTC>) +\d+ +(?=-)/g, " $1$2 <ms> ")
  );
}

/** Only what parts an answer is made of: the members of its records, or the words its lines begin with. */
export function formOf(text: string, format: string): readonly string[] {
  if (format === "table") {
    const started = text.split("\n").map((line) => /^[A-Z][\w -]*?(?= {2}|$)/.exec(line)?.[0] ?? "");
    return distinct(started.filter((words) => words !== ""));
  }
  const documents = format === "json" ? [text] : text.split("\n").filter((line) => line !== "");
  const values = documents.map((document) => JSON.parse(document) as { data?: unknown });
  return distinct(values.flatMap((value) => [value.data ?? value].flat()).map(membersOf));
}

function membersOf(record: unknown): string {
  return typeof record === "string" ? "a text" : Object.keys(record as object).join(" ");
}

function distinct(words: readonly string[]): readonly string[] {
  return [...new Set(words)];
}
