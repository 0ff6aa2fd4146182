import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import {
  durationText,
  MINUTES_AND_UP,
  parseDurationMs,
  parseEncryptionKey,
  parseIsoTime,
} from "../../src/domain/formats.ts";
import { words } from "../support/words.ts";

describe("a duration", () => {
  test.each([
    ["500ms", 500],
    ["2s", 2_000],
    ["30m", 1_800_000],
    ["12h", 43_200_000],
    ["90d", 7_776_000_000],
    ["0s", 0],
    ["007d", 604_800_000],
  ])("%s is a duration", (text, ms) => {
    expect(parseDurationMs(text)).toBe(ms);
  });

  test.each([
    ...words(`
      30 m -1m +1m 1.5h 1e3s 1M 1w 1mm 1h30m １m 1constructor`),
    "",
    "1 m",
    " 1m",
    "1m\n",
  ])("%j is refused", (text) => {
    expect(parseDurationMs(text)).toBeUndefined();
  });

  test("only the requested units are accepted", () => {
    expect(parseDurationMs("30m", MINUTES_AND_UP)).toBe(1_800_000);
    expect(parseDurationMs("30s", MINUTES_AND_UP)).toBeUndefined();
    expect(parseDurationMs("30ms", MINUTES_AND_UP)).toBeUndefined();
  });

  test.each(["500ms", "2s", "90m", "12h", "5d", "1500ms"])("%s is printed as it was read", (text) => {
    expect(durationText(parseDurationMs(text) ?? 0)).toBe(text);
  });

  test("a whole number of a longer unit is printed in that unit", () => {
    expect(durationText(48 * 3_600_000)).toBe("2d");
    expect(durationText(120_000)).toBe("2m");
  });
});

describe("parseIsoTime", () => {
  test.each([
    ["1970-01-01T00:00:00Z", 0],
    ["1970-01-01T00:00Z", 0],
    ["1970-01-01T00:00:00.5Z", 500],
    ["1970-01-01T00:00:00.123Z", 123],
    ["1970-01-01T01:30:00+01:30", 0],
    ["1969-12-31T19:00:00-05:00", 0],
    ["1970-01-01T00:00:00-00:00", 0],
    ["2024-02-29T23:59:59.999Z", Date.UTC(2024, 1, 29, 23, 59, 59, 999)],
    ["2000-02-29T00:00:00Z", Date.UTC(2000, 1, 29)],
    ["0001-01-01T00:00:00Z", Date.parse("0001-01-01T00:00:00.000Z")],
    ["9999-12-31T23:59:59.999Z", Date.parse("9999-12-31T23:59:59.999Z")],
  ])("reads %s", (text, expected) => {
    expect(parseIsoTime(text)).toBe(expected);
  });

  test.each([
    ["1970-01-01T00:00:00.0001Z", 1],
    ["1970-01-01T00:00:00.000000001Z", 1],
    ["1970-01-01T00:00:00.999999999Z", 1_000],
    ["1970-01-01T00:00:00.123000000Z", 123],
  ])("rounds %s up to whole milliseconds", (text, expected) => {
    expect(parseIsoTime(text)).toBe(expected);
  });

  test.each([
    ...words(`
      now 2026 2026-01-31 2026-01-31T09:30:00 2026-01-31t09:30:00z 2026-1-31T09:30:00Z 20260131T093000Z
      2026-01-31T09Z 2026-01-31T09:30:00,5Z 2026-01-31T09:30:00.Z 2026-01-31T09:30:00.0000000001Z
      2026-01-31T09:30:00+01 2026-01-31T09:30:00+0100 2026-01-31T09:30:00+24:00 2026-01-31T09:30:00+01:60
      2026-01-31T24:00:00Z 2026-01-31T09:60:00Z 2016-12-31T23:59:60Z 2026-00-10T00:00:00Z
      2026-13-10T00:00:00Z 2026-01-00T00:00:00Z 2026-01-32T00:00:00Z 2026-04-31T00:00:00Z
      2026-02-29T00:00:00Z 1900-02-29T00:00:00Z +002026-01-31T09:30:00Z 9999-12-31T23:59:59.9999Z
      9999-12-31T23:59:59-01:00 0000-01-01T00:00:00+01:00 ２026-01-31T09:30:00Z`),
    "",
    "2026-01-31 09:30:00Z",
    "2026-01-31T09:30:00 01:00",
    " 2026-01-31T09:30:00Z",
    "2026-01-31T09:30:00Z\n",
  ])("does not take %j", (text) => {
    expect(parseIsoTime(text)).toBeUndefined();
  });

  test("agrees with Date on every day of a leap year and a common one", () => {
    for (let ms = Date.UTC(2023, 0, 1); ms < Date.UTC(2025, 0, 1); ms += 86_400_000) {
      expect(parseIsoTime(new Date(ms).toISOString())).toBe(ms);
    }
  });
});

describe("an encryption key", () => {
  test("reads 32 bytes as hex, base64 and base64url", () => {
    for (let round = 0; round < 50; round += 1) {
      const key = randomBytes(32);
      const texts = [
        key.toString("hex"),
        key.toString("hex").toUpperCase(),
        key.toString("base64"),
        key.toString("base64").replace("=", ""),
        key.toString("base64url"),
      ];
      for (const text of texts) expect(Buffer.from(parseEncryptionKey(text) ?? "")).toEqual(key);
    }
  });

  test.each([
    "",
    "secret",
    "ab".repeat(31),
    "ab".repeat(33),
    `${"ab".repeat(31)}zz`,
    randomBytes(31).toString("base64"),
    randomBytes(33).toString("base64"),
    `${"A".repeat(42)}!=`,
    "correct horse battery staple correct horse!!",
  ])("refuses %j", (text) => {
    expect(parseEncryptionKey(text)).toBeUndefined();
  });
});
