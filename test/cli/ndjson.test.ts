import { array, assert, asyncProperty, boolean, nat, string } from "fast-check";
import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { type Line, readLines } from "../../src/cli/publish/bulk-batch.ts";

async function linesOf(chunks: readonly Buffer[], maxLineBytes = 1_000): Promise<Line[]> {
  const lines: Line[] = [];
  for await (const group of readLines(Readable.from(chunks), maxLineBytes)) lines.push(...group);
  return lines;
}

function text(line: Line): string | undefined {
  return line.bytes === undefined ? undefined : Buffer.from(line.bytes).toString();
}

test("lines are the same however the input is cut into chunks", async () => {
  await assert(
    asyncProperty(
      array(string({ unit: "grapheme", minLength: 1 }).filter((part) => !/[\n\r\s\ufeff]/.test(part))),
      array(nat({ max: 40 })),
      boolean(),
      async (parts, cuts, ended) => {
        const input = Buffer.from(parts.join("\n") + (ended ? "\n" : ""));
        const places = [...new Set(cuts.map((cut) => Math.min(cut, input.length)))].toSorted((a, b) => a - b);
        const chunks = [0, ...places].map((start, at) => input.subarray(start, places[at] ?? input.length));
        const lines = await linesOf(chunks);
        expect(lines.map(text)).toEqual(parts);
        expect(lines.map((line) => line.number)).toEqual(parts.map((_, at) => at + 1));
      },
    ),
  );
});

test("blank lines are skipped but counted, and a byte order mark is ignored", async () => {
  const lines = await linesOf([Buffer.from("\ufeff{}\n\n \t\r\n[]\n")]);
  expect(lines.map(({ number }) => number)).toEqual([1, 4]);
  expect(lines.map(text)).toEqual(["{}", "[]"]);
});

test("an overlong line is reported without its bytes, and the next one is read", async () => {
  const chunks = ["a".repeat(8), "a".repeat(8), "b\nok\n", "c".repeat(30)].map((part) => Buffer.from(part));
  const lines = await linesOf(chunks, 10);
  expect(lines.map((line) => [line.number, text(line)])).toEqual([
    [1, undefined],
    [2, "ok"],
    [3, undefined],
  ]);
  expect(lines.at(-1)?.endsAt).toBe(18 + 3 + 30);
});

test("a line is passed on when its producer pauses, not at the next chunk", async () => {
  const stream = new Readable({ read() {} });
  const groups = readLines(stream, 1_000);
  stream.push("first\nsec");
  const { value } = await groups.next();
  expect((value as Line[]).map(text)).toEqual(["first"]);
  stream.push("ond\n");
  stream.push(null);
  expect(((await groups.next()).value as Line[]).map(text)).toEqual(["second"]);
});
