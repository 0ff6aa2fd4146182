import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { bytesOf, type JsonNode, memberOf, nameOf, textOf } from "../../src/json/nodes.ts";
import { valueOf } from "../../src/json/parse.ts";
import { Scan, scanJson } from "../../src/json/scanner.ts";

const bytes = (text: string): Uint8Array => Buffer.from(text);

describe("the parts of a document", () => {
  const text = ' { "a" : 1.50 , "p\\u0061yload":{ "10":1, "2" : [ ] } ,"é":[ "x", null ] } ';
  const document = bytes(text);

  test("are returned byte for byte, white space inside included", () => {
    const root = scanJson(document, { record: [8, 8] });
    expect(textOf(document, root)).toBe(text.trim());
    expect(root.children.map((child) => [nameOf(document, child), child.kind])).toEqual([
      ["a", "number"],
      ["payload", "object"],
      ["é", "array"],
    ]);
    const payload = memberOf(document, root, "payload")!;
    expect(textOf(document, payload)).toBe('{ "10":1, "2" : [ ] }');
    expect(Buffer.from(bytesOf(document, payload)).toString()).toBe('{ "10":1, "2" : [ ] }');
    expect(payload.children.map((child) => textOf(document, child))).toEqual(["1", "[ ]"]);
    expect(valueOf(document, root.children[2]!)).toEqual(["x", null]);
    expect(memberOf(document, root, "b")).toBeUndefined();
  });

  test("are recorded to the requested depth and number, and all are counted", () => {
    const root = scanJson(bytes("[[1,2,3],[4],[5,6]]"), { record: [2, 1] });
    expect(root.count).toBe(3);
    expect(root.children.map(({ count, children }) => [count, children.length])).toEqual([
      [3, 1],
      [1, 1],
    ]);
    expect(scanJson(bytes("[[1]]")).children).toEqual([]);
  });

  test("can be scanned in place, with the position of errors in the whole", () => {
    const whole = bytes('[1,\n{"a":2}, {"b":tru}]');
    const span = { start: 4, end: 11 };
    expect(textOf(whole, scanJson(whole, { span, record: [4] }))).toBe('{"a":2}');
    expect(() => scanJson(whole, { span: { start: 13, end: 22 } })).toThrow("line 2, column 15 (byte 18)");
    expect(() => scanJson(whole, { span: { start: 4, end: 10 } })).toThrow("found the end");
  });

  test("are checked for syntax only below the recorded levels, on request", () => {
    const lenient = { record: [4, 4], strictLevels: 2 };
    expect(() => scanJson(bytes('[[{"a":1,"a":2,"b":"\\ud800"}]]'), lenient)).not.toThrow();
    expect(() => scanJson(bytes('[["\\ud800"]]'), lenient)).toThrow("surrogate");
    expect(() => scanJson(bytes('{"a":1,"a":2}'), lenient)).toThrow("twice");
    expect(() => scanJson(bytes("[[{]]"), lenient)).toThrow("expected a key");
  });

  test("of any document, put together again, give that document's value", () => {
    const rebuild = (source: Uint8Array, node: JsonNode): unknown => {
      if (node.kind === "array") return node.children.map((child) => rebuild(source, child));
      if (node.kind !== "object") return valueOf(source, node);
      return Object.fromEntries(
        node.children.map((child) => [nameOf(source, child), rebuild(source, child)]),
      );
    };
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 5 }), fc.constantFrom(0, 1, 3), (value, indent) => {
        const written = bytes(JSON.stringify(value, null, indent));
        const root = scanJson(written, { record: Array<number>(8).fill(Infinity) });
        expect(rebuild(written, root)).toEqual(JSON.parse(JSON.stringify(value)));
      }),
      { numRuns: 500, seed: 3 },
    );
  });
});

describe("a scan that is interrupted", () => {
  test("at every comma finds what an uninterrupted one finds", () => {
    const damaged = fc.tuple(fc.json(), fc.nat(), fc.constantFrom("", '"', "{", "}", "[", "]", ",", ":"));
    fc.assert(
      fc.property(damaged, ([text, at, put]) => {
        const place = at % (text.length + 1);
        for (const document of [text, text.slice(0, place) + put + text.slice(place)]) {
          expect(rootOf(bytes(document), 1)).toEqual(rootOf(bytes(document), Infinity));
        }
      }),
      { numRuns: 1_000, seed: 5 },
    );
  });
});

describe("hostile documents", () => {
  test.each([
    ["wide objects", `{${Array.from({ length: 400_000 }, (_, i) => `"k${i}":0`).join()}}`],
    [
      "many middling objects",
      `[${`{${Array.from({ length: 60 }, (_, i) => `"key${i}":0`).join()}},`.repeat(5_000)}0]`,
    ],
    [
      "long equal beginnings",
      `{${Array.from({ length: 2_000 }, (_, i) => `"${"x".repeat(2_000)}${i}":0`).join()}}`,
    ],
    ["escaped keys", `{${Array.from({ length: 200_000 }, (_, i) => `"\\u0061${i}":0`).join()}}`],
    ["nothing but opening", "[".repeat(4_000_000)],
    ["one long string", `"${"\\n".repeat(2_000_000)}"`],
    ["many errors on one line", `{"a":1${" ".repeat(4_000_000)}x`],
  ])("%s are read in linear time", (_, text) => {
    expect(secondsFor(text)).toBeLessThan(3);
  });
});

/** What a scan in maxByteses of so many bytes comes to. */
function rootOf(source: Uint8Array, maxBytes: number): unknown {
  try {
    const scan = new Scan(source, { record: [3, 3, 3] });
    while (!scan.advance(maxBytes));
    return scan.finish();
  } catch (error) {
    return (error as Error).message;
  }
}

function secondsFor(text: string): number {
  const input = bytes(text);
  const began = process.cpuUsage();
  try {
    scanJson(input);
  } catch {
    // Refused is fine; slow is not.
  }
  return process.cpuUsage(began).user / 1e6;
}
