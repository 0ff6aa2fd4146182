import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { describe, expect, test } from "vitest";
import { anchorsOf, codeIn, PAGES, proseOf, readPage, ROOT, rowsOf, sectionOf } from "./documents.ts";

const ALL = [
  ...PAGES,
  "CHANGELOG.md",
  "test/bench/README.md",
  "test/chaos/README.md",
  "test/faults/README.md",
];

describe.each(ALL)("%s", (page) => {
  test("each link leads to a file, and to a heading of it", () => {
    const broken: string[] = [];
    for (const [link, target = ""] of proseOf(page).matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      const [path = "", anchor] = target.split("#");
      const file = path === "" ? page : relative(ROOT, join(ROOT, dirname(page), path));
      if (!existsSync(join(ROOT, file))) broken.push(link);
      else if (anchor !== undefined && !anchorsOf(file).has(anchor)) broken.push(link);
    }
    expect(broken).toEqual([]);
  });

  test("no word is used that the glossary replaces", () => {
    const text = readPage(page).toLowerCase();
    const found = REPLACED.filter((word) => new RegExp(String.raw`(?<![\w-])${word}(?![\w-])`).test(text));
    expect(found).toEqual([]);
  });
});

/** Words of evreg's own that the field has terms for. "in flight" is such a term. */
const REPLACED = [
  ..."tempo bulkhead turn-taking slowing finisher pacer keeper ailing boarding cargo landed".split(" "),
  ..."hungry restless aboard tidy party parties breathe earnest flows? grace standing patient told".split(
    " ",
  ),
  "lease watch",
  "caller line",
  "kept back",
  "(?<!in )(?<!in-)flights?",
];

test("the front page has at most 10 KB", () => {
  expect(Buffer.byteLength(readPage("README.md"))).toBeLessThanOrEqual(10 * 1024);
});

test("the index has each page", () => {
  const index = readPage("docs/README.md");
  const pages = PAGES.filter((page) => page.startsWith("docs/") && page !== "docs/README.md");
  for (const page of pages) expect(index).toContain(`](${page.slice("docs/".length)})`);
});

test("the package contains each page", () => {
  const { files } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as {
    readonly files: readonly string[];
  };
  expect(files).toEqual(expect.arrayContaining(["docs", "examples", "CHANGELOG.md", "CONTRIBUTING.md"]));
});

describe("the map of the sources", () => {
  const page = "CONTRIBUTING.md";

  test("the table of folders names each folder", () => {
    const shown = rowsOf(sectionOf(page, "Folders")).map(([folder = ""]) => codeIn(folder)[0] ?? "");
    const folders = readdirSync(join(ROOT, "src"), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map((entry) => relative(ROOT, join(entry.parentPath, entry.name)));
    const others = new Set(["bin", "test", "src/evreg.ts", "src/api-operations.ts"]);
    expect(shown.filter((folder) => !others.has(folder)).toSorted()).toEqual(folders.toSorted());
  });

  test("each file that it names is there", () => {
    const paths = codeIn(proseOf(page)).filter((code) => /^(?:src|test|bin)\/[\w./-]+$/.test(code));
    expect(paths.length).toBeGreaterThan(40);
    expect(paths.filter((path) => !existsSync(join(ROOT, path)))).toEqual([]);
  });
});
