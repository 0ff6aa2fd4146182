import { copyFileSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { BulkSource } from "../../src/cli/publish/bulk-input.ts";
import { assertDistinctPaths, RejectFile } from "../../src/cli/publish/bulk-report.ts";
import { NOTHING_SETTLED } from "../../src/cli/publish/bulk-run.ts";
import { Checkpoint, type CheckpointOptions } from "../../src/cli/publish/checkpoint.ts";
import { temporaryFolder } from "../support/program.ts";

const folder = temporaryFolder();
const at = (name: string): string => join(folder.path, name);
const EVENTS = "line\n".repeat(1_000_000);
const STATE = { ...NOTHING_SETTLED, settledLine: 9, settledBytes: 45 };
const REFUSAL = { error: "No.", details: {}, code: 422 };
const opened: BulkSource[] = [];
let timeMs = 0;

beforeAll(() => writeFileSync(at("events"), EVENTS));
afterAll(() => {
  for (const source of opened) source.close();
  folder.remove();
});

function options(given: Partial<CheckpointOptions> & { readonly of?: string } = {}): CheckpointOptions {
  const { of = at("events"), ...others } = given;
  const source = new BulkSource(of);
  opened.push(source);
  const to = { dataId: "a", target: "https://a.example" };
  return { path: at("checkpoint"), source, ...to, nowMs: () => timeMs, ...others };
}

function lineOf(number: number, text = "x"): { number: number; bytes: Buffer; endsAt: number } {
  return { number, bytes: Buffer.from(text, "latin1"), endsAt: 0 };
}

function keptLine(): number {
  return (JSON.parse(readFileSync(at("checkpoint"), "utf8")) as { line: number }).line;
}

test("a checkpoint is written at once, then twice a second, and can be read again", async () => {
  const checkpoint = await Checkpoint.open(options());
  expect(keptLine()).toBe(0);
  checkpoint.note(STATE);
  expect(keptLine()).toBe(0);
  timeMs += 500;
  checkpoint.note(STATE);
  expect(keptLine()).toBe(9);
  expect((await Checkpoint.open(options())).state).toEqual(STATE);
});

test("the keys of a file's lines are made of its size, beginning and end, wherever it lies", async () => {
  const keyIn = async (of: string, path: string) =>
    (await Checkpoint.open(options({ of, path: at(path) }))).keyOf(lineOf(9));
  const key = await keyIn(at("events"), "checkpoint");
  expect(key).toMatch(/^bulk:[\w-]{16}:000000009$/);
  copyFileSync(at("events"), at("copy"));
  expect(await keyIn(at("copy"), "of a copy")).toBe(key);
  const others = [EVENTS.slice(5), `b${EVENTS.slice(1)}`, `${EVENTS.slice(0, -2)}b\n`];
  for (const [index, text] of others.entries()) {
    writeFileSync(at("changed"), text);
    expect(await keyIn(at("changed"), `of another ${index}`)).not.toBe(key);
  }
});

test("a file is refused whose published part was changed; what is not published yet may change and grow", async () => {
  const [path, source] = [at("middle checkpoint"), at("middle")];
  writeFileSync(source, EVENTS);
  const before = await Checkpoint.open(options({ path, of: source }));
  for (const settledBytes of [1_500_000, 3_000_000]) {
    before.note({ ...STATE, settledBytes });
    before.save();
  }
  for (const place of [2_000_000, 2_999_998]) {
    writeFileSync(source, `${EVENTS.slice(0, place)}b${EVENTS.slice(place + 1)}`);
    const changed = Checkpoint.open(options({ path, of: source }));
    await expect(changed).rejects.toThrow(
      "or that was changed shortly before line 10, up to which it is published",
    );
  }
  writeFileSync(source, EVENTS.slice(0, 2_000_000));
  await expect(Checkpoint.open(options({ path, of: source }))).rejects.toThrow(
    "was changed shortly before line 10",
  );
  writeFileSync(source, `${EVENTS.slice(0, 3_500_000)}b${EVENTS.slice(3_500_001)}line\n`);
  const after = await Checkpoint.open(options({ path, of: source }));
  expect(after.state).toEqual({ ...STATE, settledBytes: 3_000_000 });
  expect(after.keyOf(lineOf(9))).toBe(before.keyOf(lineOf(9)));
});

test("a checkpoint of other data is refused, at the same address too; the same data may move", async () => {
  expect((await Checkpoint.open(options({ target: "/srv/data" }))).state).toEqual(STATE);
  const elsewhere = { dataId: "b", target: "https://b.example" };
  await expect(Checkpoint.open(options(elsewhere))).rejects.toThrow(
    /is of other data than there is at https:\/\/b\.example: .* To go on with the data that it is of, .* \(--url, --context or --data\)\. .* is not stored twice, .*; what a restore has lost is stored again\.$/,
  );
  expect(keptLine()).toBe(9);
});

test("a file that is not a checkpoint is not overwritten", async () => {
  const whole = JSON.parse(readFileSync(at("checkpoint"), "utf8")) as object;
  for (const text of [
    "",
    "[]",
    "null",
    '{"line":1}',
    JSON.stringify({ ...whole, evreg_checkpoint: 4 }),
    JSON.stringify({ ...whole, line: -1 }),
    JSON.stringify({ ...whole, data_id: undefined }),
    JSON.stringify({ ...whole, seed: null }),
  ]) {
    writeFileSync(at("precious"), text);
    await expect(Checkpoint.open(options({ path: at("precious") }))).rejects.toMatchObject({
      code: "usage",
      message: expect.stringContaining("is no checkpoint of publish --batch, and is left as it is."),
    });
    expect(readFileSync(at("precious"), "utf8")).toBe(text);
  }
  expect(() => options({ of: folder.path })).toThrow(`and ${folder.path} is none`);
  const nowhere = Checkpoint.open(options({ path: at("no/such") }));
  await expect(nowhere).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("ENOENT"),
  });
});

test("refused lines are added on resume, and are those of this run otherwise", () => {
  const refuse = (continues: boolean, ...all: readonly Parameters<RejectFile["add"]>[]) => {
    const file = new RejectFile(at("refused"), continues);
    for (const one of all) file.add(...one);
    file.sync();
    file.close();
  };
  refuse(false, [lineOf(7), REFUSAL]);
  refuse(false, [lineOf(1, '{"\u00e9'), { ...REFUSAL, details: { field: "a.b" } }]);
  refuse(true, [lineOf(2, "y"), REFUSAL], [{ number: 3, bytes: undefined, endsAt: 0 }, REFUSAL]);
  const lines = readFileSync(at("refused"), "utf8").trimEnd().split("\n");
  expect(lines.map((line) => JSON.parse(line) as unknown)).toEqual([
    {
      line: 1,
      code: 422,
      error: "No.",
      field: "a.b",
      text_base64: Buffer.from('{"\u00e9', "latin1").toString("base64"),
    },
    { line: 2, code: 422, error: "No.", text: "y" },
    { line: 3, code: 422, error: "No." },
  ]);
  expect(() => new RejectFile(folder.path, false)).toThrow("could not be written (EISDIR");
});

test("no file is both read and written", () => {
  expect(() =>
    assertDistinctPaths({ "--checkpoint": at("new"), "--rejects": `${folder.path}/sub/../new` }),
  ).toThrow("--checkpoint and --rejects name the same file");
  assertDistinctPaths({ "--batch": "-", "--checkpoint": undefined, "--rejects": at("new") });
  symlinkSync(at("events"), at("link"));
  expect(() => assertDistinctPaths({ "--batch": at("events"), "--rejects": at("link") })).toThrow(
    "--batch and --rejects name the same file",
  );
});
