import { expect, test } from "vitest";
import { expiry } from "../../src/cli/flags.ts";

const NOW_MS = Date.UTC(2027, 0, 31, 12);

test.each([
  ["30m", "2027-01-31T12:30:00.000Z"],
  ["12h", "2027-02-01T00:00:00.000Z"],
  ["90d", "2027-05-01T12:00:00.000Z"],
  ["2028-01-01T00:00:00Z", "2028-01-01T00:00:00Z"],
])("%s is %s", (text, time) => {
  expect(expiry(text, NOW_MS)).toBe(time);
});

test("a span beyond every calendar is refused in words", () => {
  expect(() => expiry("99999999d", NOW_MS)).toThrow("too far away");
});

test.each(["tomorrow", "2028-01-01", "90 d", ""])("%j is refused with the allowed forms", (text) => {
  expect(() => expiry(text, NOW_MS)).toThrow(/^--expires: .*90d.*ISO 8601/);
});
