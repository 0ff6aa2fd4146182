import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { EXIT } from "../../src/cli/usage-errors.ts";
import { readEnvironment } from "../../src/config/load.ts";
import { CONFIG_FILE_ENV, CONFIG_KEYS } from "../../src/config/keys.ts";
import { COMPATIBILITY_MODES } from "../../src/model/action.ts";
import { DELIVERY_TRANSITIONS, isFinal } from "../../src/domain/delivery.ts";
import { ATTEMPT_ERROR_CODES, DELIVERY_STATUSES, TLS_REASONS } from "../../src/model/delivery.ts";
import { EXIT_CODE, HTTP_STATUS } from "../../src/domain/error.ts";
import { REPLAY_SELECTIONS } from "../../src/model/replay.ts";
import { SCOPE_NAMES } from "../../src/domain/token.ts";
import { type Family, parseMetrics } from "../support/prometheus.ts";
import { useServed } from "../support/served.ts";
import { commandsIn, type ShownCommand } from "./commands.ts";
import { blocksOf, codeIn, PAGES, proseOf, readPage, ROOT, rowsOf, sectionOf } from "./documents.ts";

// What the documents say of the program, compared with the program.

/** The first word in backticks of each row's first cell. */
function firstColumn(page: string, heading: string): string[] {
  return rowsOf(sectionOf(page, heading)).map(([cell = ""]) => codeIn(cell)[0] ?? cell);
}

interface Manifest {
  readonly commands: Readonly<
    Record<
      string,
      {
        readonly aliases: readonly string[];
        readonly hidden?: boolean;
        readonly flags: Readonly<
          Record<string, { readonly char?: string; readonly aliases?: readonly string[] }>
        >;
      }
    >
  >;
}
const { commands } = JSON.parse(readFileSync(join(ROOT, "oclif.manifest.json"), "utf8")) as Manifest;

function flagsOf(id: string): Set<string> {
  const flags = new Set<string>();
  for (const [name, { char, aliases = [] }] of Object.entries(commands[id]?.flags ?? {})) {
    for (const word of [name, `no-${name}`, ...aliases]) flags.add(`--${word}`);
    if (char !== undefined) flags.add(`-${char}`);
  }
  return flags;
}

/** The command that the first words name, longest first: `events get 1` is not `events`. */
function idOf({ words }: ShownCommand): string | undefined {
  for (const count of [2, 1]) {
    const name = words.slice(0, count).join(":");
    if (commands[name] !== undefined) return name;
    const id = Object.keys(commands).find((other) => commands[other]?.aliases.includes(name));
    if (id !== undefined) return id;
  }
  return undefined;
}

describe("commands", () => {
  const shown = PAGES.flatMap((page) => commandsIn(page));

  test("each command in a document is one of the program", () => {
    const known = new Set(["--version", "--help"]);
    const unknown = shown.filter((one) => idOf(one) === undefined && !known.has(one.flags[0] ?? ""));
    expect(unknown).toEqual([]);
    expect(shown.length).toBeGreaterThan(100);
  });

  test("each flag of a command in a document is one of that command", () => {
    const unknown = shown.flatMap((one) => {
      const known = flagsOf(idOf(one) ?? "")
        .add("--help")
        .add("--version");
      return one.flags.filter((flag) => !known.has(flag)).map((flag) => `${one.page}: ${one.text}: ${flag}`);
    });
    expect(unknown).toEqual([]);
  });

  test("each command that the page of the server shows is one of the program, and has its flags", () => {
    const folder = join(ROOT, "src/ui");
    const texts = readdirSync(folder, { recursive: true, encoding: "utf8" })
      .filter((name) => /\.tsx?$/.test(name))
      .map((name) => readFileSync(join(folder, name), "utf8"))
      .flatMap((source) => source.match(/(?<=(?:["'`>]|with )evreg )[a-z].*/g) ?? [])
      // Sentences about evreg.
      .filter((text) => !/^(?:gave|sends|publishes|has|does)\b/.test(text));
    const wrong = texts.filter((text) => {
      const flags = text.match(/(?<= )--[a-z-]+/g) ?? [];
      const id = idOf({ page: "", text, words: text.match(/[a-z-]+/g) ?? [], flags });
      return id === undefined || flags.some((flag) => !flagsOf(id).add("--help").has(flag));
    });
    expect(wrong).toEqual([]);
    expect(texts.length).toBeGreaterThan(20);
  });

  test("each flag that stands alone in a document is one of some command", () => {
    const known = new Set(["--help"]);
    for (const id of Object.keys(commands)) for (const flag of flagsOf(id)) known.add(flag);
    const unknown = PAGES.flatMap((page) =>
      codeIn(proseOf(page))
        .map((code) => /^--?[a-z-]+(?=[ =]|$)/.exec(code)?.[0])
        .filter((flag) => flag !== undefined && !known.has(flag))
        .map((flag) => `${page}: ${flag}`),
    );
    expect(unknown).toEqual([]);
  });

  test("the documents name each command", () => {
    const named = new Set(shown.map(idOf));
    const hidden = Object.keys(commands).filter((id) => commands[id]?.hidden === true);
    expect(Object.keys(commands).filter((id) => !named.has(id))).toEqual(hidden);
  });
});

describe("configuration", () => {
  const page = "docs/configuration.md";

  test("the table has each key with its variable and default", () => {
    const rows = rowsOf(sectionOf(page, "Keys")).map(([key, variable, initial]) => [key, variable, initial]);
    expect(rows).toEqual(
      CONFIG_KEYS.map(({ path, env, default: initial }) => {
        const isUnset = initial === null || (Array.isArray(initial) && initial.length === 0);
        return [`\`${path}\``, `\`${env}\``, isUnset ? "–" : `\`${String(initial)}\``];
      }),
    );
  });

  test("the page names each flag and each further variable of a key", () => {
    for (const { path, flag, envAlias, env, secret } of CONFIG_KEYS) {
      const row = rowsOf(sectionOf(page, "Keys"))
        .find(([key]) => key === `\`${path}\``)
        ?.join(" ");
      if (flag !== undefined) expect(row).toContain(`\`--${flag}\``);
      if (envAlias !== undefined) expect(row).toContain(envAlias);
      if (secret === true) expect(readPage(page)).toContain(`\`${env}_FILE\``);
    }
  });

  test("the other variables are ones that the program takes", () => {
    const names = firstColumn(page, "Other variables");
    expect(names).toEqual(expect.arrayContaining([CONFIG_FILE_ENV]));
    const { problems } = readEnvironment(Object.fromEntries(names.map((name) => [name, "1"])), "/");
    expect(problems).toEqual([]);
  });

  test("each key in a document is one of the configuration", () => {
    const paths = new Set(CONFIG_KEYS.map(({ path }) => path));
    const groups = new Set([...paths].filter((path) => path.includes(".")).map((path) => path.split(".")[0]));
    const unknown = PAGES.flatMap((one) =>
      codeIn(proseOf(one))
        .map((code) => /^([a-z]+)\.[a-zA-Z]+/.exec(code))
        .filter((match) => match !== null && groups.has(match[1]) && !paths.has(match[0]))
        .map((match) => `${one}: ${match?.[0]}`),
    );
    expect(unknown).toEqual([]);
  });

  test("each variable in a document is one of the program", () => {
    const known = new Set(readPage(page).match(/\b(?:EVREG|SERVICE)_\w+/g));
    for (const one of PAGES) {
      for (const name of readPage(one).match(/\bEVREG_[A-Z_]+\b/g) ?? []) {
        expect([...known], `${one}: ${name}`).toContain(name);
      }
    }
  });
});

describe("delivering", () => {
  const page = "docs/delivering.md";
  const tables = rowsOf(sectionOf(page, "States"));

  test("the states are those of the program, and final ones are marked", () => {
    const rows = tables.filter((row) => row.length === 3);
    expect(rows.map(([state, , final]) => [codeIn(state ?? "")[0], final === "yes"])).toEqual(
      DELIVERY_STATUSES.map((status) => [status, isFinal(status)]),
    );
  });

  test("the diagram of a delivery has the states of the program, and the ways from one to another", () => {
    const diagram = blocksOf("CONTRIBUTING.md").find(({ language }) => language === "mermaid")!;
    const ways = DELIVERY_TRANSITIONS.map(
      ([from, to, causes]) => `  ${from} --> ${to}: ${causes.join(", ")}`,
    );
    const first = ["stateDiagram-v2", "  [*] --> pending: event published, or replayed"];
    expect(diagram.text.trim().split("\n")).toEqual([...first, ...ways]);
    const shown = new Set(DELIVERY_TRANSITIONS.flatMap(([from, to]) => [from, to]));
    expect([...shown].toSorted()).toEqual([...DELIVERY_STATUSES].toSorted());
  });

  test("the errors of attempts are those of the program", () => {
    const rows = tables.filter((row) => row.length === 2);
    expect(rows.map(([code = ""]) => codeIn(code)[0])).toEqual([...ATTEMPT_ERROR_CODES]);
  });
});

const inOrder = (names: readonly string[]): readonly string[] => names.toSorted();

test.each([
  ["reasons why TLS fails", "docs/delivering.md", "TLS", TLS_REASONS],
  ["replays", "docs/delivering.md", "Sending again: retry, skip and replay", REPLAY_SELECTIONS],
  ["scopes", "docs/tokens.md", "Scopes", SCOPE_NAMES],
  ["modes", "docs/compatibility.md", "Modes", COMPATIBILITY_MODES],
])("the %s in %s are those of the program", (_, page, heading, names) => {
  expect(inOrder(firstColumn(page, heading))).toEqual(inOrder(names));
});

test("the exit codes are those of the program", () => {
  const known = new Set<number>([...Object.values(EXIT), ...Object.values(EXIT_CODE)]);
  const shown = rowsOf(sectionOf("docs/command-line.md", "Exit codes")).map(([code]) => Number(code));
  expect(shown).toEqual([...known].toSorted((a, b) => a - b));
});

test("the errors of the API are those of the program", () => {
  const shown = rowsOf(sectionOf("docs/troubleshooting.md", "Errors of the API"));
  // These arise in a client: no server answers them.
  const unanswered = new Set(["unreachable", "usage"]);
  const known = Object.entries(HTTP_STATUS).filter(([code]) => !unanswered.has(code));
  expect(shown.map(([status, code = ""]) => [codeIn(code)[0], Number(status)])).toEqual(
    known.toSorted(([, status], [, other]) => status - other),
  );
});

describe("with a server", () => {
  const served = useServed();
  const answer = (path: string): Promise<Response> => fetch(new URL(path, served.server.url));

  test("each metric in a document is one of the program, and the page has them all", async () => {
    const families: ReadonlyMap<string, Family> = parseMetrics(await (await answer("/metrics")).text());
    const own = [...families.keys()].filter((name) => name.startsWith("evreg_"));
    const documented = new Set(readPage("docs/metrics.md").match(/\bevreg_\w+/g));
    expect([...documented].toSorted()).toEqual(own.toSorted());
    for (const page of PAGES) {
      for (const [name] of readPage(page).matchAll(/\bevreg_[a-z_]+\b/g)) expect(own, page).toContain(name);
    }
  });

  test("the labels of metrics are those of the program", async () => {
    const families = parseMetrics(await (await answer("/metrics")).text());
    for (const [, name = "", labels = ""] of readPage("docs/metrics.md").matchAll(
      /`(evreg_\w+)\{([a-z_,]+)\}`/g,
    )) {
      const series = families.get(name)?.series ?? [];
      const known = new Set(series.flatMap((one) => Object.keys(one.labels)));
      if (series.length > 0) expect([...known].toSorted(), name).toEqual(labels.split(",").toSorted());
    }
  });

  test("each route in a document is one of the API", async () => {
    const { paths } = (await (await answer("/openapi.json")).json()) as {
      readonly paths: Readonly<Record<string, object>>;
    };
    const known = new Set(
      Object.entries(paths).flatMap(([path, methods]) =>
        Object.keys(methods).map((method) => `${method.toUpperCase()} ${path.replaceAll(/\{\w+\}/g, ":")}`),
      ),
    );
    const unknown = PAGES.flatMap((page) =>
      [...proseOf(page).matchAll(/`((?:GET|POST|PUT|PATCH|DELETE) \/[^`?]*)[`?]/g)]
        .map(([, route = ""]) => route)
        .filter((route) => !known.has(route.replaceAll(/:\w+/g, ":")))
        .map((route) => `${page}: ${route}`),
    );
    expect(unknown).toEqual([]);
  });

  test("evreg's own events have the members that the page lists", async () => {
    const rows = rowsOf(sectionOf("docs/delivering.md", "Events about evreg itself"));
    const common = ["subscription_id", "application", "subscription", "action"];
    const { data } = (await (await answer("/v1/actions?application=evreg")).json()) as {
      readonly data: readonly {
        readonly action: string;
        readonly schemata: { readonly properties: object };
      }[];
    };
    const members = data.map(({ action, schemata }) => [action, Object.keys(schemata.properties).toSorted()]);
    const shown = rows.map(([action = "", , list = ""]) => {
      return [codeIn(action)[0], [...codeIn(list), ...common].toSorted()];
    });
    expect(Object.fromEntries(shown)).toEqual(Object.fromEntries(members));
  });
});
