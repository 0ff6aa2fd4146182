import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { isLong } from "../../faults/length.ts";
import { textWidth } from "../../../src/cli/io/text.ts";
import { commandLine } from "../../support/command-line.ts";
import type { Outcome } from "../../support/program.ts";
import { formOf, normalised } from "./normalised.ts";
import { type Row, ROWS } from "./rows.ts";
import { createWorld, type World } from "./world.ts";

// Every command × (local, remote) × (table, json, jsonl) × (done, not found, no right to it, no server). The commands and
// their formats are those of the manifest, so a new one without a row fails. They run in the
// order of the rows, and the snapshots are of that: one alone may find others' numbers.

interface Manifest {
  readonly commands: Readonly<
    Record<string, { readonly flags: Readonly<Record<string, { readonly options?: readonly string[] }>> }>
  >;
}
const MANIFEST = fileURLToPath(new URL("../../../oclif.manifest.json", import.meta.url));
const { commands } = JSON.parse(readFileSync(MANIFEST, "utf8")) as Manifest;
const FORMATS = ["table", "json", "jsonl"] as const;
type Format = (typeof FORMATS)[number];

/**
 * What each command does takes all formats at a server. A command on a data folder costs ten times as much, as it opens and
 * closes the file, and what it refuses is printed in one place for all: of those each row takes one format, so that all of
 * them come in turn; `npm run test:faults` has every one.
 * @param turn of the row, and of what is refused
 */
function takes(format: Format, turn: number): boolean {
  return isLong || FORMATS.indexOf(format) === turn % FORMATS.length;
}

const EXIT = { done: 0, failed: 1, usage: 2, notFound: 3, auth: 4, unreachable: 6 };
/** Of so many rows on a data folder, one is refused in the ordinary suite. */
const REFUSED_EVERY = 4;
/** How a person reads what is refused at a server. */
const REFUSALS: Readonly<Record<number, RegExp>> = {
  [EXIT.notFound]:
    /^Error: There is no (\w+?)y? (?:"no[./]such"|999999)\..*\nSee those there are: evreg \1(?:s|ies) --url <server> --token TOKEN\n$/,
  [EXIT.auth]:
    /^Error: The token is unknown, expired or revoked\. With an admin token, .*\nGive a token with --token-file FILE or EVREG_TOKEN\.\n$/,
};
const NOBODY = "http://127.0.0.1:9";
const WRONG = `evreg_${"0".repeat(36)}`;

let world: World;
/** Of what each command printed at the server, by id and format. */
const forms = new Map<string, readonly string[]>();
let run: (line: string, input?: string, env?: Record<string, string>) => Promise<Outcome>;

beforeAll(async () => {
  world = await createWorld();
  const there = commandLine(world.folder, {});
  run = (line, input = "", env = {}) => there.run(line, { input, env });
});
afterAll(() => world?.close());

test("every command of the manifest is in the table, and every format is tried", () => {
  expect(Object.keys(ROWS).toSorted()).toEqual(Object.keys(commands).toSorted());
  for (const [id, { flags }] of Object.entries(commands)) {
    if (ROWS[id] === null) continue;
    expect.soft(flags["output"]?.options, id).toEqual(FORMATS);
  }
});

const rows = Object.entries(ROWS).flatMap(([id, row], at) => (row === null ? [] : [{ id, row, at }]));
const remote = rows.filter(({ id }) => "token" in (commands[id]?.flags ?? {}));

/** The command by its id, what it is asked, in which format, and where it acts. */
function lineOf(id: string, asked: string, format: Format, where: string): string {
  const output = format === "table" ? "" : `--output ${format}`;
  return [id.replace(":", " "), asked, output, where].filter((words) => words !== "").join(" ");
}

const atServer = (token = world.token): string => `--url ${world.url} --token ${token}`;
const here = ({ place }: Row): string => (place === "none" ? "" : `--data ${world.local}`);

/** That stdout holds what the format says, and nothing beside it. */
function expectData({ stdout }: Outcome, format: Format, row: Row): void {
  expect(stdout).toMatch(/\n$/);
  if (format === "table") return;
  const documents = format === "json" || row.isText === true ? [stdout] : stdout.slice(0, -1).split("\n");
  for (const document of documents) expect(JSON.parse(document)).toBeTypeOf("object");
}

function expectFailure(outcome: Outcome, code: number, format: Format): void {
  expect(outcome).toMatchObject({ code, stdout: "" });
  if (format === "table") {
    expect(outcome.stderr).toMatch(/^Error: .+\n/);
    expect(outcome.stderr).not.toMatch(/^ +at /m);
  } else {
    expect(outcome.stderr).toMatch(/^.+\n$/);
    const told = JSON.parse(outcome.stderr) as { code: number };
    const members = { error: expect.any(String), details: expect.any(Object), code: expect.any(Number) };
    expect(told).toEqual(members);
    expect(told.code).toBeGreaterThanOrEqual(400);
  }
}

async function expectDone(id: string, row: Row, format: Format, where: string): Promise<string> {
  const which = FORMATS.indexOf(format);
  const outcome = await run(lineOf(id, row.ok(world, which), format, where), row.input?.(which));
  if (row.refuses?.includes(format)) {
    expectFailure(outcome, EXIT.usage, format);
    return "";
  }
  expect(outcome).toMatchObject({ code: EXIT.done });
  expect(outcome.stderr).not.toMatch(/Error|^ +at /m);
  expectData(outcome, format, row);
  return outcome.stdout;
}

/** What is kept of what a command prints for people, and as one document. */
function kept(row: Row, format: Format, stdout: string): string {
  if (format === "jsonl" || (row.varies === "lines" && format === "table")) return "";
  return row.varies === undefined ? normalised(stdout, world) : `${formOf(stdout, format).join("\n")}\n`;
}

describe("at a server", () => {
  test.each(remote)("$id", async ({ id, row, at }) => {
    const secrets = [world.token, WRONG];
    let shown = "";
    for (const format of FORMATS) {
      const stdout = await expectDone(id, row, format, atServer());
      shown += kept(row, format, stdout);
      forms.set(`${id} ${format}`, formOf(stdout, format));

      const ok = row.ok(world, 0);
      const failures: [code: number, asked: string, where: string][] = [
        [EXIT.auth, ok, atServer(WRONG)],
        [EXIT.unreachable, ok, `--url ${NOBODY}`],
      ];
      if (row.missing !== null) failures.unshift([EXIT.notFound, row.missing, atServer()]);
      for (const [index, [code, asked, where]] of failures.entries()) {
        // For people, how the first of them reads is compared for each.
        if (!takes(format, at + index) && !(format === "table" && index === 0)) continue;
        const outcome = await run(lineOf(id, asked, format, where), row.input?.(0));
        for (const secret of secrets) expect(outcome.stdout + outcome.stderr).not.toContain(secret);
        if (row.refuses?.includes(format)) expectFailure(outcome, EXIT.usage, format);
        else if (row.reportsOfServer) expect(outcome, where).toMatchObject({ code: EXIT.failed, stderr: "" });
        else {
          expectFailure(outcome, code, format);
          if (format === "table")
            expect.soft(normalised(outcome.stderr, world)).toMatch(REFUSALS[code] ?? "");
        }
      }
    }
    expect.soft(shown).toMatchSnapshot();
  });
});

const looks = remote.filter(({ id }) => /:(?:list|get|history|deliveries)$/.test(id));

test.each(looks)("$id fits into 40 columns", async ({ id, row }) => {
  const command = lineOf(id, row.ok(world, 0), "table", atServer());
  const { code, stdout } = await run(command, "", { COLUMNS: "40" });
  expect(code).toBe(EXIT.done);
  for (const line of stdout.split("\n")) expect.soft(textWidth(line), line).toBeLessThanOrEqual(40);
});

describe("on a data folder", () => {
  test.each(rows)("$id", async ({ id, row, at }) => {
    const isOnlyHere = !remote.some((one) => one.id === id);
    let shown = "";
    for (const format of FORMATS) {
      if (!isOnlyHere && !takes(format, at)) continue;
      const stdout = await expectDone(id, row, format, here(row));
      if (isOnlyHere) shown += kept(row, format, stdout);
      else if (row.varies !== "lines" && format !== "table" && forms.has(`${id} ${format}`)) {
        // A program cannot tell which it has. A table leaves out what a record has not, and other runs changed these.
        expect.soft(formOf(stdout, format)).toEqual(forms.get(`${id} ${format}`));
      }
      if (row.missing === null || row.refuses?.includes(format)) continue;
      if (!isLong && at % REFUSED_EVERY !== 0) continue;
      const outcome = await run(lineOf(id, row.missing, format, here(row)), row.input?.(0));
      expectFailure(outcome, EXIT.notFound, format);
    }
    if (isOnlyHere) expect.soft(shown).toMatchSnapshot();
  });

  test.each(remote)("$id, where there is none", async ({ id, row, at }) => {
    if (row.place === "makes folder") return;
    const empty = mkdtempSync(join(world.folder, "empty-"));
    for (const format of FORMATS) {
      if (!takes(format, at)) continue;
      const none = `--data ${join(empty, "none")}`;
      const outcome = await run(lineOf(id, row.ok(world, 0), format, none), row.input?.(0));
      if (row.refuses?.includes(format)) expectFailure(outcome, EXIT.usage, format);
      else if (row.reportsOfServer) expect(outcome).toMatchObject({ code: EXIT.failed, stderr: "" });
      else expectFailure(outcome, EXIT.notFound, format);
    }
    rmSync(empty, { recursive: true });
  });
});
