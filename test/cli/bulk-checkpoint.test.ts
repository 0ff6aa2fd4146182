import {
  appendFileSync,
  copyFileSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BulkSource } from "../../src/cli/publish/bulk-input.ts";
import { assertDistinctPaths, RejectFile } from "../../src/cli/publish/bulk-report.ts";
import { Checkpoint, type CheckpointOptions } from "../../src/cli/publish/checkpoint.ts";
import { temporaryFolder } from "../support/program.ts";

const folder = temporaryFolder();
const at = (name: string): string => join(folder.path, name);
const EVENTS = "line\n".repeat(1_000_000);
const STATE = { accepted: 7, replayed: 1, refused: 2, settledLine: 9, settledBytes: 45 };
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
  for (const place of [0, 2_000_000, 2_999_998]) {
    writeFileSync(source, `${EVENTS.slice(0, place)}b${EVENTS.slice(place + 1)}`);
    const changed = Checkpoint.open(options({ path, of: source }));
    await expect(changed).rejects.toThrow("or that was changed before line 10, up to which it is published");
  }
  writeFileSync(source, EVENTS.slice(0, 2_000_000));
  await expect(Checkpoint.open(options({ path, of: source }))).rejects.toThrow("was changed before line 10");
  writeFileSync(source, `${EVENTS.slice(0, 3_500_000)}b${EVENTS.slice(3_500_001)}line\n`);
  const after = await Checkpoint.open(options({ path, of: source }));
  expect(after.state).toEqual({ ...STATE, settledBytes: 3_000_000 });
  expect(after.keyOf(lineOf(9))).toBe(before.keyOf(lineOf(9)));
});

describe("a file that has grown", () => {
  const path = at("growing checkpoint");
  const source = at("growing");

  test.each([
    ["line", "\nline\n", 5],
    ["line", "\r\nline\n", 6],
    ["line\n", "line\n", 5],
    ["line\n", "\n", 5],
    ["line", " more\n", undefined],
    ["line", "\rmore\n", undefined],
  ])("%j and then %j: the line that was its last ends at %s", async (text, more, end) => {
    rmSync(path, { force: true });
    writeFileSync(source, text);
    const checkpoint = await Checkpoint.open(options({ path, of: source }));
    checkpoint.note({ ...STATE, settledBytes: text.length });
    checkpoint.save();
    appendFileSync(source, more);
    const opening = Checkpoint.open(options({ path, of: source }));
    if (end === undefined) await expect(opening).rejects.toMatchObject({ code: "usage" });
    else expect((await opening).state.settledBytes).toBe(end);
  });
});

test("a checkpoint of other data is refused, at the same address too; the same data may move", async () => {
  expect((await Checkpoint.open(options({ target: "/srv/data" }))).state).toEqual(STATE);
  const elsewhere = { dataId: "b", target: "https://b.example" };
  await expect(Checkpoint.open(options(elsewhere))).rejects.toThrow(
    /is of the data at \/srv\/data, and at https:\/\/b\.example there is other data\. .* To go on with the data that the checkpoint is of, .* \(--url, --context or --data\)\. To publish to the data at https:\/\/b\.example, .* is not stored twice, .*; what a restore has lost is stored again\.$/,
  );
  const restored = { dataId: "b", target: "/srv/data" };
  await expect(Checkpoint.open(options(restored))).rejects.toThrow(
    "is of other data than there is now at /srv/data: another data folder was there, or the one from before a restore.",
  );
  expect(keptLine()).toBe(9);
});

test("an older format is refused, and a file that is not a checkpoint is not overwritten", async () => {
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
  for (const older of [1, 2]) {
    writeFileSync(at("precious"), JSON.stringify({ ...whole, evreg_checkpoint: older, seed: undefined }));
    await expect(Checkpoint.open(options({ path: at("precious") }))).rejects.toThrow("is of an older evreg");
  }
  expect(() => options({ of: folder.path })).toThrow(`and ${folder.path} is none`);
  const nowhere = Checkpoint.open(options({ path: at("no/such") }));
  await expect(nowhere).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("ENOENT"),
  });
});

test("refused lines after the checkpoint are removed on resume, so that each is there once", () => {
  const first = new RejectFile(at("refused"), 0);
  first.add(lineOf(1, '{"\u00e9'), { ...REFUSAL, details: { field: "a.b" } });
  const kept = first.bytes;
  first.add(lineOf(2), REFUSAL);
  first.close();
  const second = new RejectFile(at("refused"), kept);
  second.add(lineOf(2, "y"), REFUSAL);
  second.add({ number: 3, bytes: undefined, endsAt: 0 }, REFUSAL);
  second.sync();
  second.close();
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
  expect(() => new RejectFile(at("refused"), 10_000)).toThrow("shorter than the checkpoint says");
  expect(() => new RejectFile(at("gone"), 1)).toThrow("shorter than the checkpoint says");
  expect(() => new RejectFile(folder.path, 0)).toThrow("could not be written (EISDIR");
});

test("no file is both read and written, under any name", () => {
  symlinkSync(at("events"), at("link"));
  mkdirSync(at("sub"));
  expect(() => assertDistinctPaths({ "--batch": at("events"), "--rejects": at("link") })).toThrow(
    "name the same file",
  );
  expect(() =>
    assertDistinctPaths({ "--checkpoint": at("new"), "--rejects": `${folder.path}/sub/../new` }),
  ).toThrow("--checkpoint and --rejects name the same file");
  assertDistinctPaths({ "--batch": "-", "--checkpoint": undefined, "--rejects": at("new") });
});
