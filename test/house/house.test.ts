import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

// What holds for all of `src`, and what no linter of ours can say: which folder may import which, that no imports run in
// a circle (those of types included), and how large a file and a folder may be. CONTRIBUTING.md draws the same layers.

const SRC = fileURLToPath(new URL("../../src", import.meta.url));
const MAX_LINES_PER_FILE = 450;
const MAX_FILES_PER_FOLDER = 24;

/** What every part may import: neither knows anything of the others. */
const LEAVES = ["json", "domain", "runtime/yielding.ts"];

/** A part of `src` (the longest name that fits a file's path counts), and the parts it may import beside itself. */
const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  json: [],
  "runtime/yielding.ts": [],
  domain: ["json", "runtime/yielding.ts"],
  "evreg.ts": ["domain"],
  "metrics/counters.ts": ["domain"],
  runtime: ["domain", "runtime/yielding.ts"],
  schema: ["domain", "runtime/yielding.ts"],
  import: ["domain", "schema"],
  config: ["domain", "runtime"],
  store: ["domain", "metrics/counters.ts", "runtime", "runtime/yielding.ts"],
  "store/libsql": [...LEAVES, "runtime", "store"],
  service: [...LEAVES, "config", "evreg.ts", "metrics/counters.ts", "runtime", "schema", "store"],
  delivery: [...LEAVES, "config", "metrics/counters.ts", "runtime", "schema", "store"],
  metrics: ["domain", "metrics/counters.ts", "runtime", "store"],
  http: [...LEAVES, "evreg.ts", "metrics/counters.ts", "runtime", "service"],
  client: ["domain", "evreg.ts", "json"],
  sdk: ["client", "domain", "evreg.ts", "json"],
  app: [
    "config",
    "delivery",
    "domain",
    "evreg.ts",
    "http",
    "metrics",
    "metrics/counters.ts",
    "runtime",
    "service",
    "store",
    "store/libsql",
  ],
  "cli/io": ["cli", "domain", "json", "runtime"],
  resources: ["cli", "cli/io", "config", "domain", "schema"],
  cli: [
    "app",
    "cli/io",
    "client",
    "config",
    "domain",
    "evreg.ts",
    "import",
    "json",
    "resources",
    "runtime",
    "schema",
  ],
  commands: [
    "app",
    "cli",
    "cli/io",
    "client",
    "config",
    "domain",
    "evreg.ts",
    "json",
    "resources",
    "runtime",
    "schema",
  ],
};

const FILES = readdirSync(SRC, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".ts"))
  .map((path) => path.replaceAll("\\", "/"));

const textOf = (file: string): string => readFileSync(join(SRC, file), "utf8");

/** The files of `src` that one imports: values, types, and what it loads while it runs. */
function importsOf(file: string): readonly string[] {
  const specifiers = textOf(file).matchAll(/(?:\bfrom\s+|\bimport\s*\(\s*|^import\s+)"(\.[^"]+)"/gm);
  return [...specifiers].map(([, path = ""]) => posix.normalize(posix.join(posix.dirname(file), path)));
}

const IMPORTS = new Map(FILES.map((file) => [file, importsOf(file)]));

function partOf(file: string): string {
  const parts = Object.keys(MAY_IMPORT).filter((part) => file === part || file.startsWith(`${part}/`));
  return parts.toSorted((one, other) => other.length - one.length)[0] ?? "nothing";
}

test("a part of src imports only what it may", () => {
  const wrong: string[] = [];
  for (const [file, imports] of IMPORTS) {
    const part = partOf(file);
    for (const imported of imports) {
      const other = partOf(imported);
      if (other !== part && !MAY_IMPORT[part]?.includes(other)) wrong.push(`${file} imports ${imported}`);
    }
  }
  expect(wrong).toEqual([]);
});

test("no imports run in a circle, those of types included", () => {
  const done = new Set<string>();
  const circles: string[] = [];
  const follow = (file: string, path: readonly string[]): void => {
    const at = path.indexOf(file);
    if (at !== -1) circles.push([...path.slice(at), file].join(" → "));
    if (at !== -1 || done.has(file)) return;
    for (const imported of IMPORTS.get(file) ?? []) follow(imported, [...path, file]);
    done.add(file);
  };
  for (const file of FILES) follow(file, []);
  expect(circles).toEqual([]);
});

test("files and folders keep to their sizes", () => {
  const long = FILES.filter((file) => textOf(file).split("\n").length - 1 > MAX_LINES_PER_FILE);
  expect(long).toEqual([]);
  const folders = Map.groupBy(FILES, (file) => relative(".", dirname(file)));
  const full = [...folders]
    .filter(([, files]) => files.length > MAX_FILES_PER_FOLDER)
    .map(([folder]) => folder);
  expect(full).toEqual([]);
});
