import { fullFormats } from "ajv-formats/dist/formats.js";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { accepted } from "./refused.ts";

test("a date-time is what ajv-formats takes for one and RFC 3339 allows, at the edges of the usual form too", () => {
  const { validate } = fullFormats["date-time"] as { validate: (text: string) => boolean };
  const two = fc.constantFrom(
    "00",
    "01",
    "02",
    "04",
    "10",
    "12",
    "13",
    "23",
    "24",
    "28",
    "29",
    "30",
    "31",
    "59",
    "60",
  );
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
      const isStrict = "Tt".includes(one[one.indexOf("-") + 6] ?? "") && /(?:z|:\d\d)$/i.test(one);
      expect([one, schema.validate(one) === undefined]).toEqual([one, validate(one) && isStrict]);
    }),
    { numRuns: 20_000, seed: 7 },
  );
});

const LATE = 2 ** 31;

test.each<readonly [format: string, taken: readonly unknown[], refused: readonly unknown[]]>([
  ["time", ["12:00:00Z", "23:59:60z", "12:00:00.5+01:00"], ["12:00:00", "12:00:00+01", "12:00:00+0100"]],
  [
    "iso-date-time",
    ["2026-01-31T12:00:00", "2026-01-31t12:00:00+01", "2026-01-31 12:00:00Z"],
    ["2026-01-31\n12:00:00", "2026-01-31\t12:00:00", "2026-01-31\u00a012:00:00", "2026-01-31"],
  ],
  ["iso-time", ["12:00:00", "12:00:00+0100"], ["12:00"]],
  [
    "byte",
    ["", "AAAA", "AA==", "AAA=", "+/+/AAA="],
    [
      "A",
      "AA",
      "AAA",
      "A===",
      "====",
      "=AAA",
      "AA=A",
      "AA==AAAA",
      "AAAA\n",
      "!!!\n",
      "not base64!\nAAAA",
      "-_-_",
    ],
  ],
  ["int32", [0, -0, 1.0, LATE - 1, -LATE], [0.5, LATE, -LATE - 1, 1e30, -1e30]],
  ["int64", [0, LATE, 2 ** 62, 2 ** 63, -(2 ** 63)], [0.5, 1e30, -1e30, 2 ** 63 + 2048, -(2 ** 63) - 2048]],
])("%s is strict", (format, taken, refused) => {
  const schema = accepted({ properties: { a: { format } } });
  expect(taken.filter((a) => schema.validate({ a }) !== undefined)).toEqual([]);
  expect(refused.filter((a) => schema.validate({ a }) === undefined)).toEqual([]);
});
