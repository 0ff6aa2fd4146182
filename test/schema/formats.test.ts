import { fullFormats } from "ajv-formats/dist/formats.js";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { budget, VALIDATION_STEPS } from "../../src/schema/limits.ts";
import { FORMATS, INTEGER_FORMATS } from "../../src/schema/validate/formats.ts";
import { words } from "../support/words.ts";
import { accepted } from "./refused.ts";

test("date-time accepts what ajv-formats and RFC 3339 both accept", () => {
  const { validate } = fullFormats["date-time"] as { validate: (text: string) => boolean };
  const two = fc.constantFrom(...words("00 01 02 04 10 12 13 23 24 28 29 30 31 59"));
  const year = fc.constantFrom("2023", "2024", "1900", "2000", "0000", "999", "+2024");
  const zone = fc.constantFrom("Z", "z", "", "+00:00", "-23:59", "+24:00", "+0100", "+01", " Z", "Z\n");
  const part = fc.constantFrom("", "", "", ".5", ".", ".123456789");
  const text = fc
    .tuple(year, two, two, fc.constantFrom("T", "t", " ", "\n", "_"), two, two, two, part, zone)
    .map(
      ([y, month, day, t, hour, minute, second, fraction, z]) =>
        `${y}-${month}-${day}${t}${hour}:${minute}:${second}${fraction}${z}`,
    );
  const schema = accepted({ format: "date-time" });
  fc.assert(
    fc.property(text, (one) => {
      const isStrict = /^.{10}t(?!24).*(?:z|:\d\d)$/i.test(one);
      expect([one, schema.validate(one) === undefined]).toEqual([one, validate(one) && isStrict]);
    }),
    { numRuns: 5_000, seed: 7 },
  );
});

const LATE = 2 ** 31;

const OF_TEXTS = Object.keys(FORMATS).filter((name) => !INTEGER_FORMATS.has(name));

test.each(OF_TEXTS)("%s refuses what is none of it", (format) => {
  expect(accepted({ properties: { a: { format } } }).validate({ a: "no ( such %" })).toBeDefined();
});

// Most of those that are taken as ajv-formats has them are in docs/schemas.md, by an example.
test.each<readonly [format: string, taken: readonly unknown[], refused: readonly unknown[]]>([
  [
    "date",
    ["2024-02-29", "2000-02-29", "0000-02-29"],
    ["2023-02-29", "1900-02-29", "0100-02-29", "2024-1-01", "2024-00-01", ""],
  ],
  ["uri-reference", ["", "a", "//a", "?a", "#a", "./a:b", "a/b:c"], ["a b", "#a#b", "é"]],
  [
    "time",
    words("12:00:00Z 23:59:60z 12:00:00.5+01:00 00:59:60+01:00 15:59:60.5-08:00 23:29:60+23:30"),
    words(`
      12:00:00 12:00:00+01 12:00:00+0100 24:00:00Z 24:59:60+01:00 24:59:00+01:00 23:59:60+01:00 22:59:60Z 23:59:61Z`),
  ],
  [
    "date-time",
    words("2016-12-31T23:59:60Z 2017-01-01T00:59:60+01:00 2016-12-31T15:59:60.1-08:00 0016-02-29T23:59:60Z"),
    words("0015-02-29T23:59:60Z 2016-12-31T22:59:60Z 2016-12-31T24:59:60+01:00 2016-12-31T24:00:00Z"),
  ],
  [
    "url",
    ["https://example.com", "ftp://u:p@example.com:80/a%20b", "http://localhost", "http://müller.de/"],
    ["http://", "http:///a", "mailto:a@b.c", "http://a.b c", "http://a.bc/x y"],
  ],
  [
    "email",
    ["a@b", "a.b+c@d.e", '"a b"@c', '"a\\"@"@b.c', '"\\\\"@b', "a@[127.0.0.1]", "a@[ipv6:::1]", '""@b'],
    [
      ...words(
        'a @b a@ .a@b a.@b a..b@c a@b@c a@b. a@-b a@[1.2.3] a@[1.2.3.256] a@[x] "a"b@c "a\\"@b é@b a@é',
      ),
      "a b@c",
      "a@b\n",
    ],
  ],
  [
    "hostname",
    ["a", "1a", "a-b.c", "xn--mnchen-3ya.de", `${"a".repeat(63)}.b`],
    ["", ".", "a.", ".a", "a..b", "-a", "a-", "a_b", "a".repeat(64), `${"a.".repeat(127)}aa`, "é"],
  ],
  [
    "byte",
    ["", "AAAA", "AA==", "AAA=", "+/+/AAA="],
    [...words("A AA AAA A=== ==== =AAA AA=A AA==AAAA -_-_"), "AAAA\n", "!!!\n", "not base64!\nAAAA"],
  ],
  ["int32", [0, -0, 1.0, LATE - 1, -LATE], [0.5, LATE, -LATE - 1, 1e30, -1e30]],
  ["int64", [0, LATE, 2 ** 62, 2 ** 63, -(2 ** 63)], [0.5, 1e30, -1e30, 2 ** 63 + 2048, -(2 ** 63) - 2048]],
])("%s is strict", (format, taken, refused) => {
  const schema = accepted({ properties: { a: { format } } });
  expect(taken.filter((a) => schema.validate({ a }) !== undefined)).toEqual([]);
  expect(refused.filter((a) => schema.validate({ a }) === undefined)).toEqual([]);
});

const LONG = 2 ** 18;

test("no long text makes a format slow", () => {
  const texts = ["a", "a@", "::", "é", "{a,"].flatMap((one) => [
    one.repeat(LONG / one.length),
    `http://${one.repeat(LONG / one.length)}!`,
  ]);
  for (const [name, format] of Object.entries(FORMATS)) {
    if (typeof format !== "function") continue;
    const { user } = process.threadCpuUsage();
    for (const text of texts) {
      budget.left = VALIDATION_STEPS;
      format(text);
    }
    // Some milliseconds each; with the square of the length it would be a minute.
    expect([name, process.threadCpuUsage().user - user]).toEqual([
      name,
      expect.toSatisfy((us) => us < 2_000_000),
    ]);
  }
});
