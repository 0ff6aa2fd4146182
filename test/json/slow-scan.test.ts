import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import type { JsonNode } from "../../src/json/nodes.ts";
import { scanJson, scanJsonSlowly } from "../../src/json/scanner.ts";

/** Never has time for a second step, and counts how often it lets others in. */
class Stopping {
  breaths = 0;
  mayGoOn(): boolean {
    return false;
  }
  breathe(): Promise<void> {
    this.breaths += 1;
    return Promise.resolve();
  }
}

async function slowly(text: string, options = {}): Promise<{ answer: JsonNode | string; breaths: number }> {
  const pace = new Stopping();
  const answer = await scanJsonSlowly(Buffer.from(text), options, pace).catch(told);
  return { answer, breaths: pace.breaths };
}

function atOnce(text: string, options = {}): JsonNode | string {
  try {
    return scanJson(Buffer.from(text), options);
  } catch (error) {
    return told(error);
  }
}

function told(error: unknown): string {
  if (error instanceof EvregError) return error.message;
  throw error;
}

const members = (count: number, name = (at: number) => `k${at}`): string[] =>
  Array.from({ length: count }, (_, at) => `"${name(at)}":${at}`);
const object = (...inner: string[]): string => `{${inner.join(",")}}`;
const wide = object(...members(20_000));

describe("a scan that lets others in comes to what one at a stretch does", () => {
  test.each([
    ["an object of very many keys", wide, 4],
    ["one inside another, with more behind it", object(...members(9_000), `"in":[${wide},1]`, `"on":{}`), 6],
    ["two side by side", `[${wide},${wide}]`, 8],
    ["the last key there twice", object(...members(20_000), `"k19999":0`), 4],
    ["a key there twice in different spellings", object(...members(20_000), `"\\u006b7":0`), 4],
    ["only keys with escapes", object(...members(20_000, (at) => `\\u006b${at}`)), 4],
    ["what is wrong behind it", `[${wide},]`, 4],
    ["no end", wide.slice(0, -1), 1],
    ["a list of hundreds of thousands", `[${"{},".repeat(300_000)}[]]`, 10],
    ["a long text", `["${"x".repeat(300_000)}","${"y".repeat(300_000)}"]`, 1],
  ])("%s", async (_, text, least) => {
    for (const options of [{}, { record: [8, 8] }]) {
      const { answer, breaths } = await slowly(text, options);
      expect(answer).toEqual(atOnce(text, options));
      expect(breaths).toBeGreaterThanOrEqual(least);
    }
  });

  test("where there may not be so many keys at all", async () => {
    const { answer, breaths } = await slowly(wide, { maxKeys: 2_000 });
    expect(answer).toEqual(atOnce(wide, { maxKeys: 2_000 }));
    expect(answer).toContain("too many members");
    // The keys are not looked through first.
    expect(breaths).toBeLessThan(6);
  });

  test("any document", async () => {
    await fc.assert(
      fc.asyncProperty(fc.json({ maxDepth: 6 }), fc.integer({ min: 0, max: 200 }), async (text, cut) => {
        for (const each of [text, text.slice(0, Math.max(0, text.length - cut))]) {
          expect((await slowly(each, { record: [3, 3] })).answer).toEqual(atOnce(each, { record: [3, 3] }));
        }
      }),
      { numRuns: 200 },
    );
  });
});
