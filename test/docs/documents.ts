import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** What readers get, by its path in the repository. The changelog is history: only its links and words are checked. */
export const PAGES = [
  "README.md",
  "CONTRIBUTING.md",
  "examples/README.md",
  ...readdirSync(join(ROOT, "docs"))
    .filter((name) => name.endsWith(".md"))
    .map((name) => `docs/${name}`),
];

export interface Block {
  readonly page: string;
  readonly line: number;
  /** Of the fence; empty for what a program prints. */
  readonly language: string;
  readonly text: string;
  /** Why a reader's command cannot be run by a test: `<!-- not run: REASON -->` on the line before the fence. */
  readonly notRun: string | undefined;
}

export function readPage(page: string): string {
  return readFileSync(join(ROOT, page), "utf8");
}

/** The fenced blocks of a page, in order. */
export function blocksOf(page: string): Block[] {
  const blocks: Block[] = [];
  let open: { line: number; language: string; notRun: string | undefined; lines: string[] } | undefined;
  let previous = "";
  for (const [index, line] of readPage(page).split("\n").entries()) {
    const fence = /^```(\S*)/.exec(line);
    if (fence === null) open?.lines.push(line);
    else if (open === undefined) {
      const [, notRun] = /^<!-- not run: (.+) -->$/.exec(previous) ?? [];
      open = { line: index + 1, language: fence[1] ?? "", notRun, lines: [] };
    } else {
      const { lines, ...block } = open;
      blocks.push({ ...block, page, text: lines.map((one) => `${one}\n`).join("") });
      open = undefined;
    }
    previous = line;
  }
  if (open !== undefined) throw new Error(`${page}:${open.line}: a block does not end.`);
  return blocks;
}

/** The file that a block is, where its first line is a comment with the name: `# registry/shop.yaml`. */
export function fileNamedBy(text: string): string | undefined {
  return /^(?:\/\/|#) ([\w./-]+\.\w+)\n/.exec(text)?.[1];
}

/** A page without its fenced blocks. */
export function proseOf(page: string): string {
  return readPage(page).replaceAll(/^```[\s\S]*?^```$/gm, "");
}

/** The text of a page under one of its headings, to the next of that level or above. */
export function sectionOf(page: string, heading: string): string {
  const prose = proseOf(page);
  const start = new RegExp(`^(#+) ${heading}$`, "m").exec(prose);
  if (start === null) throw new Error(`${page} has no heading "${heading}".`);
  const rest = prose.slice(start.index + start[0].length);
  const end = new RegExp(`^#{1,${start[1]?.length ?? 1}} `, "m").exec(rest);
  return rest.slice(0, end?.index);
}

/** The rows of the tables in a text, without their heads. */
export function rowsOf(text: string): string[][] {
  const rows: string[][] = [];
  let isBody = false;
  for (const line of text.split("\n")) {
    if (!line.startsWith("|")) isBody = false;
    else if (/^[|\s-]+$/.test(line)) isBody = true;
    else if (isBody) {
      const cells = line.slice(1, -1).split(/(?<!\\)\|/);
      rows.push(cells.map((cell) => cell.trim()));
    }
  }
  return rows;
}

/** The texts in backticks. */
export function codeIn(text: string): string[] {
  return [...text.matchAll(/`([^`\n]+)`/g)].map(([, code = ""]) => code);
}

/** The names that links to headings of a page have, as GitHub makes them. */
export function anchorsOf(page: string): Set<string> {
  const seen = new Map<string, number>();
  const anchors = new Set<string>();
  for (const [, heading = ""] of proseOf(page).matchAll(/^#+ (.+)$/gm)) {
    const slug = heading
      .trim()
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
      .replaceAll(/\s/g, "-");
    const times = seen.get(slug) ?? 0;
    seen.set(slug, times + 1);
    anchors.add(times === 0 ? slug : `${slug}-${times}`);
  }
  return anchors;
}
