import { fullFormats } from "ajv-formats/dist/formats.js";
import * as fc from "fast-check";
import { expect, test } from "vitest";
import { accepted } from "./refused.ts";

test("a date-time is what ajv-formats takes for one, near the usual form and at its edges", () => {
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
    .tuple(year, two, two, fc.constantFrom("T", "t", " ", "_"), two, two, two, part, zone)
    .map(
      ([y, month, day, t, hour, minute, second, fraction, z]) =>
        `${y}-${month}-${day}${t}${hour}:${minute}:${second}${fraction}${z}`,
    );
  const schema = accepted({ format: "date-time" });
  fc.assert(
    fc.property(text, (one) => {
      expect([one, schema.validate(one) === undefined]).toEqual([one, validate(one)]);
    }),
    { numRuns: 20_000, seed: 7 },
  );
});
