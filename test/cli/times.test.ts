import { expect, test } from "vitest";
import { expiry } from "../../src/cli/flags.ts";
import { pastTime } from "../../src/domain/formats.ts";

const NOW_MS = Date.UTC(2026, 10, 23, 12);

test.each([
  ["30m", "2026-11-23T11:30:00.000Z"],
  ["1h", "2026-11-23T11:00:00.000Z"],
  ["2d", "2026-11-21T12:00:00.000Z"],
  ["99999d", "1970-01-01T00:00:00.000Z"],
  ["2026-11-22", "2026-11-22T00:00:00Z"],
  ["2026-11-22T08:00:00+01:00", "2026-11-22T08:00:00+01:00"],
  ["2026-02-30", "2026-02-30"],
  ["yesterday", "yesterday"],
])("as a time of the past, %s is %s", (text, time) => {
  expect(pastTime(text, NOW_MS)).toBe(time);
});

test.each([
  ["30m", "2026-11-23T12:30:00.000Z"],
  ["12h", "2026-11-24T00:00:00.000Z"],
  ["90d", "2027-02-21T12:00:00.000Z"],
  ["2028-01-01T00:00:00Z", "2028-01-01T00:00:00Z"],
])("as the end of a token, %s is %s", (text, time) => {
  expect(expiry(text, NOW_MS)).toBe(time);
});

const FORMS = /^--expires: .*90d.*ISO 8601/;

test.each([
  ["99999999d", /too far away/],
  ["tomorrow", FORMS],
  ["2028-01-01", FORMS],
  ["90 d", FORMS],
  ["", FORMS],
])("as the end of a token, %j is refused", (text, message) => {
  expect(() => expiry(text, NOW_MS)).toThrow(message);
});
