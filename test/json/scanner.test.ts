import * as fc from "fast-check";
import { describe, expect, test } from "vitest";
import { asEvregError, type EvregError } from "../../src/domain/error.ts";
import { JsonError } from "../../src/json/json-error.ts";
import { parseJson } from "../../src/json/raw-json.ts";
import { MAX_NESTING, scanJson } from "../../src/json/scanner.ts";
import { lengthOf } from "../faults/length.ts";
import { words } from "../support/words.ts";

const bytes = (text: string): Uint8Array => Buffer.from(text);

function refusal(input: string | Uint8Array, options = {}): EvregError {
  try {
    scanJson(typeof input === "string" ? bytes(input) : input, options);
  } catch (error) {
    if (error instanceof JsonError) return asEvregError(error);
    throw error;
  }
  throw new Error(`accepted ${JSON.stringify(input)}`);
}

describe("validity", () => {
  const accepted = [
    ...words(String.raw`
      0 -0 -0.0e+10 12.5E-3 1e400 12345678901234567890 "" "a\"b\\c\/d\b\f\n\r\t" true [] {} [1,[2,[3]],{"a":[]}]
      {"":1,"a":{"":2}} {"__proto__":{"x":1},"constructor":2}`),
    '"\\ud83d\\ude00 \\uD83D\\uDE00 \\u00e9 \\uFFFF"',
    '"é 😀 \u007f \u2028"',
    " \t\r\nnull\n ",
    "[ ]",
    "{ }",
    "[" + '{"a":1},'.repeat(1_000) + "0]",
  ];
  test.each(accepted)("%s", (text) => {
    expect(() => scanJson(bytes(text))).not.toThrow();
    expect(parseJson(bytes(text))).toEqual(JSON.parse(text));
  });

  /** What is said of texts, each with the byte that it is said of. */
  const refused: Readonly<Record<string, Readonly<Record<string, number>>>> = {
    "it is empty": { "": 0, "  ": 2 },
    "perhaps null was meant": { nul: 0 },
    'expected a value, found "T"': { True: 0 },
    'found "N"': { NaN: 0 },
    [`found "'"`]: { "'a'": 0 },
    'found "/"': { "// x": 0 },
    'found "+"': { "+1": 0 },
    'found "."': { ".5": 0 },
    'found "]"': { "]": 0 },
    "nothing may follow": { "01": 1, "1 2": 2, "{} x": 3, "0x10": 1 },
    "a digit is missing": { "-": 1, "-a": 1, "1.": 2, "1.e5": 2, "1e": 2, "1e+": 3 },
    "no closing quote": { '"abc': 0 },
    "escape does not exist": { '"abc\\': 4, '"\\x41"': 1 },
    "control character": { '"a\nb"': 2, '"a\u0000b"': 2 },
    "four hexadecimal digits": { '"\\u12g4"': 1, '"\\u12': 1 },
    'expected a value, found "]"': { "[1,]": 3 },
    "expected a comma or a closing bracket": { "[1 2]": 3, "[1}": 2 },
    "found the end": { "[1": 2, '{"a":1': 6 },
    "expected a key in double quotes": { "{a:1}": 1 },
    "expected a key in double quotes after the comma": { '{"a":1,}': 7 },
    "expected a colon": { '{"a" 1}': 5 },
    'expected a value, found "}"': { '{"a":}': 5 },
    "a closing brace": { '{"a":1]': 6 },
    "expected a value": { "\u00a01": 0, "\u2028": 0 },
  };
  test.each(Object.entries(refused))("not what is answered with: %s", (what, texts) => {
    for (const [text, byte] of Object.entries(texts)) {
      expect(() => JSON.parse(text)).toThrow();
      const error = refusal(text);
      expect(error).toMatchObject({ code: "malformed", details: { reason: "syntax", byte } });
      expect(error.message).toContain(what);
    }
  });

  test("an error has its line and column, counted in characters", () => {
    const error = refusal('{\n  "é😀": tru\n}');
    expect(error.message).toBe(
      "Malformed JSON at line 2, column 9 (byte 14): expected a value; perhaps true was meant.",
    );
    expect(error.details).toEqual({ line: 2, column: 9, byte: 14, reason: "syntax" });
  });
});

describe("documents that would be altered", () => {
  const duplicates = [
    ...words(String.raw`
      {"a":1,"a":1} {"a":1,"\u0061":2} {"\u0061":1,"b":0,"a":2} {"\/":1,"/":2} {"":1,"":2} {"é":1,"\u00e9":2}
      {"x":{"a":1,"b":[{"c":1,"c":2}]}}`),
    ...[16, 17, 18].flatMap((count) => [lastTwice(count, "k1"), lastTwice(count, "\\u006b1")]),
    `{"a":{${Array.from({ length: 20 }, (_, i) => `"k${i}":{"x":${i}}`).join()}},"b":1,"b":2}`,
    `{${Array.from({ length: 40 }, (_, i) => `"k${i}":${i}`).join()},"k17":0}`,
    `{${Array.from({ length: 5_000 }, (_, i) => `"k${i}":${i}`).join()},"k4321":0}`,
  ];
  test.each(duplicates)("a repeated key is refused: %.60s", (text) => {
    const error = refusal(text);
    expect(error.code).toBe("malformed");
    expect(error.details["reason"]).toBe("duplicate_key");
    expect(error.message).toMatch(/the key ".*" is in this object twice\.$/);
  });

  test("a repeated key is reported at its second place", () => {
    expect(refusal('{"a":1,\n "b":2, "a":3}').details).toMatchObject({ line: 2, column: 9 });
  });

  test.each(['{"a":{"a":1},"b":{"a":2}}', '[{"a":1},{"a":1}]', '{"a":1,"A":2,"a ":3,"\\\\u0061":4}'])(
    "the same key in different objects, and similar keys, are allowed: %s",
    (text) => expect(() => scanJson(bytes(text))).not.toThrow(),
  );

  test.each(
    words(String.raw`
      "\ud800" "\udc00" "\ud83dx" "\ud83d\u0041" "\ude00\ud83d" {"\udfff":1} ["\ud800\ud800\udc00"]`),
  )("a lone surrogate is refused: %s", (text) =>
    expect(refusal(text).details["reason"]).toBe("lone_surrogate"),
  );

  test("nesting deeper than allowed is refused, in lists, objects and both", () => {
    expect(() => scanJson(bytes(nested(MAX_NESTING)))).not.toThrow();
    expect(() => scanJson(bytes(objects(MAX_NESTING)))).not.toThrow();
    expect(refusal(nested(MAX_NESTING + 1)).details["reason"]).toBe("nesting");
    expect(refusal(objects(MAX_NESTING + 1)).message).toContain("deeper than 64 levels");
    expect(refusal("[".repeat(1_000_000)).details["reason"]).toBe("nesting");
    expect(refusal("[[]]", { maxNesting: 1 }).details["reason"]).toBe("nesting");
  });
});

describe("encoding", () => {
  const broken: [string, number[], number][] = [
    ["overlong slash", [0x22, 0xc0, 0xaf, 0x22], 1],
    ["encoded surrogate", [0x22, 0xed, 0xa0, 0x80, 0x22], 1],
    ["beyond U+10FFFF", [0x22, 0xf4, 0x90, 0x80, 0x80, 0x22], 1],
    ["lone continuation", [0x5b, 0x22, 0x61, 0x80, 0x22, 0x5d], 3],
    ["cut off character", [0x22, 0xe2, 0x82, 0x22], 1],
    ["latin-1", [0x22, 0x63, 0x61, 0x66, 0xe9, 0x22], 4],
    ["UTF-16", [0xff, 0xfe, 0x31, 0x00], 0],
  ];
  test.each(broken)("%s", (_, list, byte) => {
    const error = refusal(Uint8Array.from(list));
    expect(error.details).toMatchObject({ reason: "encoding", byte });
    expect(error.message).toContain("not UTF-8");
  });

  test("a byte order mark is refused", () => {
    expect(refusal("\ufeff{}").message).toContain("byte order mark");
    expect(() => scanJson(bytes('"\ufeff"'))).not.toThrow();
  });
});

describe("the scanner and JSON.parse agree", () => {
  test("on documents, whole and damaged", () => {
    const damaged = fc.tuple(
      fc.json(),
      fc.nat(),
      fc.constantFrom("", '"', "{", "}", "[", "]", ",", ":", "\\", "0", " ", "e", ".", "-", "\u0001"),
    );
    fc.assert(
      fc.property(damaged, ([text, at, put]) => {
        agrees(text);
        const place = at % (text.length + 1);
        agrees(text.slice(0, place) + put + text.slice(place + 1));
        agrees(text.slice(0, place) + put + text.slice(place));
      }),
      { numRuns: 1_000, seed: 7 },
    );
  });

  test("on strings of everything that has a meaning in JSON", () => {
    const piece = fc.constantFrom(
      ...Array.from('{}[],:"\\u0dD8be+-.1 \n\t'),
      "true",
      "null",
      '"a"',
      "\\u00",
      "\\ud83d\\ude00",
    );
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 14 }), (pieces) => agrees(pieces.join(""))),
      { numRuns: lengthOf("json/scanner").texts, seed: 11 },
    );
  });

  test("on any bytes", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (input) => {
        let decoded: string | undefined;
        try {
          decoded = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(input);
        } catch {
          // Not UTF-8.
        }
        if (decoded === undefined) expect(refusal(input).details["reason"]).toBe("encoding");
        else agrees(decoded);
      }),
      { numRuns: 5_000, seed: 13 },
    );
  });
});

/** An object of so many keys, the last of which is there already. */
function lastTwice(count: number, last: string): string {
  return `{${Array.from({ length: count - 1 }, (_, i) => `"k${i}":0`).join()},"${last}":0}`;
}

const nested = (levels: number) => "[".repeat(levels) + "]".repeat(levels);

const objects = (levels: number) => '{"a":'.repeat(levels) + "1" + "}".repeat(levels);

/** What JSON.parse accepts, less what is refused on top of it. */
function agrees(text: string): void {
  let parsed = true;
  try {
    JSON.parse(text);
  } catch {
    parsed = false;
  }
  let fault: JsonError | undefined;
  try {
    scanJson(bytes(text));
  } catch (error) {
    fault = error as JsonError;
  }
  const reason = fault?.reason;
  if (parsed) expect(["duplicate_key", "lone_surrogate", "nesting", undefined]).toContain(reason);
  // A text with a lone surrogate is changed by the encoding itself; anything else refused there is refused here.
  else expect(fault).toBeDefined();
}
