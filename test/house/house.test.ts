import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, posix, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { words } from "../support/words.ts";

// What holds for all of `src`, and what no linter of ours can say: which folder may import which, that no imports run in
// a circle (those of types included), and how large a file and a folder may be. CONTRIBUTING.md draws the same layers.

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const SRC = join(ROOT, "src");
const MAX_LINES_PER_FILE = 450;
const MAX_FILES_PER_FOLDER = 24;

/**
 * The parts of `src`, as files and folders: each imports only from rows above its own. The longest name that fits a path
 * counts; `model` and `domain` are one part.
 */
const ROWS = [
  ["json", "runtime/yielding.ts"],
  ["domain"],
  ["evreg.ts", "api-operations.ts", "metrics/counters.ts", "metrics/stats"],
  ["client", "ui/api"],
  ["ui/parts"],
  ["ui/records"],
  ["ui/screens"],
  ["ui/shell"],
  ["ui"],
  ["runtime", "schema", "sdk"],
  ["config", "import", "store"],
  ["store/sql"],
  ["store/thread"],
  ["delivery", "metrics", "service", "store/libsql", "store/postgres"],
  ["store/move"],
  ["http"],
  ["app"],
  ["cli"],
  ["commands"],
];

/** Who imports the parts that are not for all rows below them. */
const ONLY_FOR: Readonly<Record<string, readonly string[]>> = {
  client: ["sdk", "cli", "commands"],
  ui: [],
  schema: ["import", "delivery", "service", "cli", "commands"],
  sdk: [],
  config: ["delivery", "service", "http", "app", "cli", "commands"],
  import: ["cli", "commands"],
  store: [
    "store/sql",
    "store/thread",
    "store/libsql",
    "store/postgres",
    "store/move",
    "delivery",
    "metrics",
    "service",
    "app",
  ],
  "store/sql": ["store/thread", "store/libsql", "store/postgres", "store/move"],
  "store/thread": ["store/libsql", "store/postgres", "store/move"],
  delivery: ["app"],
  metrics: ["app"],
  service: ["http", "app"],
  "store/libsql": ["store/move", "app"],
  "store/postgres": ["store/move", "app"],
  "store/move": ["app"],
  http: ["app"],
};

const FILES = filesIn(SRC);

function filesIn(folder: string): readonly string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((path) => /\.[jt]sx?$/.test(path))
    .map((path) => path.replaceAll("\\", "/"));
}

const textOf = (file: string): string => readFileSync(join(SRC, file), "utf8");

/** The files of `src` that one imports: values, types, and what it loads while it runs. */
function importsOf(file: string): readonly string[] {
  const specifiers = textOf(file).matchAll(/(?:\bfrom\s+|\bimport\s*\(\s*|^import\s+)"(\.[^"]+)"/gm);
  return [...specifiers].map(([, path = ""]) => posix.normalize(posix.join(posix.dirname(file), path)));
}

const IMPORTS = new Map(FILES.map((file) => [file, importsOf(file)]));

function partOf(file: string): string {
  const path = file.replace(/^model\//, "domain/");
  const parts = ROWS.flat().filter((part) => path === part || path.startsWith(`${part}/`));
  return parts.toSorted((one, other) => other.length - one.length)[0] ?? "nothing";
}

const rowOf = (part: string): number => ROWS.findIndex((row) => row.includes(part));

test("a part of src imports only what it may", () => {
  const wrong: string[] = [];
  for (const [file, imports] of IMPORTS) {
    const part = partOf(file);
    for (const imported of imports) {
      const other = partOf(imported);
      const isAbove = rowOf(other) !== -1 && rowOf(other) < rowOf(part);
      const isAllowed = isAbove && (ONLY_FOR[other]?.includes(part) ?? true);
      if (other !== part && !isAllowed) wrong.push(`${file} imports ${imported}`);
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

/** The modules that a file loads as it is loaded itself, of those that match. */
function loads(file: string, specifier: RegExp): readonly string[] {
  return [...textOf(file).matchAll(/^import (?!type\b)(?:[^;"]*from )?"([^"]+)"/gm)]
    .map(([, path = ""]) => path)
    .filter((path) => specifier.test(path));
}

test("only the threads of the store load the engine, which the executable has nowhere else", () => {
  const reached = new Set(["store/libsql/open.ts"]);
  for (const file of reached) {
    for (const path of loads(file, /^\./)) reached.add(posix.normalize(posix.join(dirname(file), path)));
  }
  expect([...reached].filter((file) => loads(file, /^@libsql\//).length > 0)).toEqual([]);
  expect(loads("store/libsql/connection.ts", /^@libsql\//)).toEqual(["@libsql/client/sqlite3"]);
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

test("a comment names only files that are there", () => {
  const paths = [
    ...FILES.map((file) => `src/${file}`),
    ...filesIn(join(ROOT, "test")).map((file) => `test/${file}`),
  ];
  const wrong = FILES.flatMap((file) =>
    [...textOf(file).matchAll(/`([\w/-]+\.ts)`/g)]
      .filter(([, name]) => !paths.some((path) => path === name || path.endsWith(`/${name}`)))
      .map(([, name]) => `${file}: ${name}`),
  );
  expect(wrong).toEqual([]);
});

test("a query that is a table has a name where PostgreSQL gets it as it is written, which its version 14 wants", () => {
  const nameless = /\b(?:FROM|JOIN)\s+\(SELECT\b(?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)(?!\s+AS\b)/;
  const files = FILES.filter((file) => file.startsWith("store/postgres/"));
  expect(files.filter((file) => nameless.test(textOf(file)))).toEqual([]);
});

/**
 * Words of evreg's own that the field has better ones for (docs/glossary.md has those): in no name, comment or message.
 * Two words stand for a name or a phrase made of both.
 */
const REPLACED = words(
  "turn-taking finisher lease-watch bulkhead hungry restless kept-back slowing pacer flow flows tempo breathe breather watch-rest surroundings keeper ailing aboard boarding cargo parties caller-line in-earnest landed landing stretch impatient",
);

/** Words that are everyday English in a sentence: in no name. */
const NOT_IN_NAMES = words("patient tells asks may-go-on tidy recent board fly patience effort");

/** Names that the API, the command line, stored data or a library of ours has. */
const GIVEN = new Set(words("shutdownGraceMs EVREG_SHUTDOWN_GRACE_MS"));

/** `leaseWatch`, `LEASE_WATCH` and `lease watch` as `lease-watch`. */
function spelledOut(text: string): string {
  return text
    .replace(/([a-z0-9])(?=[A-Z])/g, "$1-")
    .replaceAll(/[_\s]+/g, "-")
    .toLowerCase();
}

function wordsIn(text: string, searched: readonly string[]): readonly string[] {
  const spelled = spelledOut(text);
  return searched.filter((word) => new RegExp(`(?<![a-z])${word}(?![a-z])`).test(spelled));
}

/** Comments, strings, templates and regular expressions. */
const NO_NAMES =
  /(?<=[=(,:?!&|[]\s*)\/(?![*/])(?:\\.|\[(?:\\.|[^\]\n])*\]|[^/\n\\])+\/|\/\/.*|\/\*[^]*?\*\/|"(?:\\.|[^"\\\n])*"|`(?:\\.|[^`\\])*`/g;

test("names and sentences use the words of the field", () => {
  const wrong: string[] = [];
  const files = ["src", "bin", "test"].flatMap((folder) =>
    filesIn(join(ROOT, folder)).map((file) => `${folder}/${file}`),
  );
  for (const file of files) {
    if (file.endsWith("house.test.ts") || file.endsWith("links.test.ts")) continue;
    const text = readFileSync(join(ROOT, file), "utf8");
    const names = text.replaceAll(NO_NAMES, " ").match(/[A-Za-z_$][\w$]*/g) ?? [];
    const ours = new Set([file, ...names].filter((name) => !GIVEN.has(name)));
    for (const word of wordsIn(`${file} ${text}`, REPLACED)) wrong.push(`${file}: ${word}`);
    for (const word of wordsIn([...ours].join("|"), NOT_IN_NAMES)) wrong.push(`${file}: the name ${word}`);
  }
  expect(wrong).toEqual([]);
});
