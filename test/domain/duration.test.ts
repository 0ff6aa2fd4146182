import { expect, test } from "vitest";
import { durationText, MINUTES_AND_UP, parseDurationMs } from "../../src/domain/formats.ts";

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
  "",
  "30",
  "m",
  "-1m",
  "+1m",
  "1.5h",
  "1e3s",
  "1 m",
  " 1m",
  "1m\n",
  "1M",
  "1w",
  "1mm",
  "1h30m",
  "１m",
  "1constructor",
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
