import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Checkpoint, identify, type CheckpointOptions } from "../../src/cli/bulk-checkpoint.ts";
import { mustDiffer, Rejects } from "../../src/cli/bulk-rejects.ts";
import { temporaryFolder } from "../support/program.ts";

const folder = temporaryFolder();
const at = (name: string): string => join(folder.path, name);
const EVENTS = "line\n".repeat(1_000_000);
const STATE = { accepted: 7, replayed: 1, refused: 2, settledLine: 9, settledBytes: 45 };
const REFUSAL = { error: "No.", details: {}, code: 422 };
let timeMs = 0;

beforeAll(() => writeFileSync(at("events"), EVENTS));
afterAll(() => folder.remove());

async function options(given: Partial<CheckpointOptions> = {}): Promise<CheckpointOptions> {
  const source = given.source ?? at("events");
  const file = await identify(source);
  return { path: at("checkpoint"), source, file, target: "https://a.example", nowMs: () => timeMs, ...given };
}

function lineOf(number: number, text = "x"): { number: number; bytes: Buffer; endsAt: number } {
  return { number, bytes: Buffer.from(text, "latin1"), endsAt: 0 };
}

function keptLine(): number {
  return (JSON.parse(readFileSync(at("checkpoint"), "utf8")) as { line: number }).line;
}

test("a checkpoint is written at once, then twice a second, and read again", async () => {
  const checkpoint = await Checkpoint.open(await options());
  expect(keptLine()).toBe(0);
  checkpoint.note(STATE);
  expect(keptLine()).toBe(0);
  timeMs += 500;
  checkpoint.note(STATE);
  expect(keptLine()).toBe(9);
  expect((await Checkpoint.open(await options())).state).toEqual(STATE);
});

test("it is known by its size, its beginning and its end, wherever it lies, and keys are made of that", async () => {
  const key = (await Checkpoint.open(await options())).keyOf(lineOf(9));
  expect(key).toMatch(/^bulk:[\w-]{16}:000000009$/);
  copyFileSync(at("events"), at("copy"));
  expect((await Checkpoint.open(await options({ source: at("copy") }))).keyOf(lineOf(9))).toBe(key);
  for (const [text, difference] of [
    [`${EVENTS}line\n`, /it has 5,000,005 bytes now, and had 5,000,000 bytes/],
    [`b${EVENTS.slice(1)}`, /its beginning or its end is another/],
    [`${EVENTS.slice(0, -2)}b\n`, /its beginning or its end is another/],
  ] as const) {
    writeFileSync(at("changed"), text);
    const changed = await options({ source: at("changed") });
    await expect(Checkpoint.open(changed)).rejects.toThrow(difference);
    const other = await Checkpoint.open({ ...changed, path: at(`checkpoint of ${changed.file.digest}`) });
    expect(other.keyOf(lineOf(9))).not.toBe(key);
  }
});

test("one of another target is refused, and what is no checkpoint is left as it is", async () => {
  const elsewhere = Checkpoint.open(await options({ target: "https://b.example" }));
  await expect(elsewhere).rejects.toThrow("is of publishing to https://a.example, not to https://b.example.");
  const whole = JSON.parse(readFileSync(at("checkpoint"), "utf8")) as object;
  for (const text of [
    "",
    "[]",
    "null",
    '{"line":1}',
    JSON.stringify({ ...whole, evreg_checkpoint: 2 }),
    JSON.stringify({ ...whole, line: -1 }),
    JSON.stringify({ ...whole, byte: 5_000_001 }),
    JSON.stringify({ ...whole, file: null }),
  ]) {
    writeFileSync(at("precious"), text);
    await expect(Checkpoint.open(await options({ path: at("precious") }))).rejects.toMatchObject({
      code: "usage",
      message: expect.stringContaining("is no checkpoint of publish --batch, and is left as it is."),
    });
    expect(readFileSync(at("precious"), "utf8")).toBe(text);
  }
  await expect(options({ source: folder.path })).rejects.toMatchObject({ code: "usage" });
  const nowhere = Checkpoint.open(await options({ path: at("no/such") }));
  await expect(nowhere).rejects.toMatchObject({
    code: "unavailable",
    message: expect.stringContaining("ENOENT"),
  });
});

test("refused lines behind the checkpoint are taken back, so that each is there once", () => {
  const first = new Rejects(at("refused"), 0);
  first.add(lineOf(1, '{"\u00e9'), { ...REFUSAL, details: { field: "a.b" } });
  const kept = first.bytes;
  first.add(lineOf(2), REFUSAL);
  first.close();
  const second = new Rejects(at("refused"), kept);
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
  expect(() => new Rejects(at("refused"), 10_000)).toThrow("shorter than the checkpoint says");
  expect(() => new Rejects(at("gone"), 1)).toThrow("shorter than the checkpoint says");
  expect(() => new Rejects(folder.path, 0)).toThrow("could not be written (EISDIR");
});

test("no file is both read and written, by whatever name", () => {
  symlinkSync(at("events"), at("link"));
  mkdirSync(at("sub"));
  expect(() => mustDiffer({ "--batch": at("events"), "--rejects": at("link") })).toThrow(
    "name the same file",
  );
  expect(() => mustDiffer({ "--checkpoint": at("new"), "--rejects": `${folder.path}/sub/../new` })).toThrow(
    "--checkpoint and --rejects name the same file",
  );
  mustDiffer({ "--batch": "-", "--checkpoint": undefined, "--rejects": at("new") });
});
