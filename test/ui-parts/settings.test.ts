import { expect, test } from "vitest";
import { RETRY_DEFAULTS } from "../../src/domain/retry.ts";
import { ApiError } from "../../src/ui/api/resource.ts";
import { wrongField } from "../../src/ui/api/drafts.ts";
import {
  changeBody,
  type Draft,
  draftedRetries,
  draftOf,
  EMPTY_DRAFT,
  newBody,
  waitsText,
} from "../../src/ui/screens/subscriptions/settings.ts";
import type { ReadSubscription } from "../../src/ui/records/exact-record.ts";

const STORED: ReadSubscription = {
  rowid: 7,
  application: "ci",
  subscription: "gate",
  action: "build.*",
  mode: "push",
  handler: "https://ci.example.com/hook",
  max_retries: 3,
  active: true,
  disabled_reason: null,
  bearer: "secret",
  previous_secret_until: null,
  failing_since: null,
  slowed_until: null,
  blocked_by: null,
  last_claim_at: null,
  filter: {},
  exactText: '{"properties":{"id":{"const":12345678901234567890}}}',
  rate_limit: 2.5,
  max_in_flight: null,
  timeout_ms: 1_500,
  headers: { "X-Team": "release: late" },
  retry_schedule: [0, 90_000, 7_200_000],
  ordered: { key: "/customer/id" },
  on_exhausted: "skip",
  expires_after_ms: null,
  timestamped: "2026-01-01T00:00:00.000Z",
};

const NAMES = { application: "ci", subscription: "gate", action: "build.done" };
const HANDLER = { handler: "https://ci.example.com/hook" };
const newDraft = (part: Partial<Draft>): Draft => ({ ...EMPTY_DRAFT, ...NAMES, ...HANDLER, ...part });

test("a subscription that nobody changes sends nothing", () => {
  expect(changeBody(draftOf(STORED), draftOf(STORED))).toBeUndefined();
});

test("only what was changed is sent, and null for what was emptied", () => {
  const before = draftOf(STORED);
  const body = changeBody({ ...before, timeout_ms: "", max_in_flight: "4", retry_schedule: "1s 5m" }, before);
  expect(JSON.parse(body!)).toEqual({ timeout_ms: null, max_in_flight: 4, retry_schedule: [1_000, 300_000] });
});

test("a filter is sent as it was typed, with all digits of its numbers", () => {
  const before = draftOf(STORED);
  const filter = '{"properties":{"id":{"const":98765432109876543210}}}';
  expect(changeBody({ ...before, filter }, before)).toBe(`{"filter":${filter}}`);
  expect(before.filter).toContain("12345678901234567890");
});

test("a new subscription sends what was given alone", () => {
  const headers = { "X-A": "1", "X-B": "2" };
  const sent = { ...NAMES, ...HANDLER, mode: "push", headers, bearer: "secret", ordered: false };
  expect(JSON.parse(newBody(newDraft({ headers: "X-A: 1\n\nX-B:2" })))).toEqual(sent);
});

test("one of mode pull sends nothing that only handlers have", () => {
  const draft = newDraft({ mode: "pull", rate_limit: "5", expires_after_ms: "2d" });
  const sent = { ...NAMES, mode: "pull", expires_after_ms: 172_800_000, ordered: false };
  expect(JSON.parse(newBody(draft))).toEqual(sent);
});

test("retries are sent once, where a number is given", () => {
  const before = draftOf(STORED);
  expect(changeBody({ ...before, max_retries: "5" }, before)).toBe('{"max_retries":5}');
  expect(changeBody({ ...before, max_retries: "" }, before)).toBeUndefined();
  expect(newBody(newDraft({ max_retries: "0" })).split('"max_retries":')).toHaveLength(2);
});

test("a value of its own as bearer is sent once it is given", () => {
  const before = draftOf({ ...STORED, bearer: "own" });
  expect(changeBody(before, before)).toBeUndefined();
  expect(changeBody({ ...before, bearer_token: "abc" }, before)).toBe('{"bearer_token":"abc"}');
});

test.each([
  ["timeout_ms", "soon"],
  ["retry_schedule", "1s, 5"],
  ["rate_limit", "many"],
  ["headers", "no colon"],
  ["headers", "X-A: 1\nX-A: 2"],
  ["filter", "{"],
  ["filter", "[1]"],
] as const)("%s refuses %j before anything is sent", (field, value) => {
  const attempt = (): unknown => newBody(newDraft({ [field]: value }));
  expect(attempt).toThrow(ApiError);
  expect(attempt).toThrow(expect.objectContaining({ details: { field } }) as Error);
});

test.each([
  [{ field: "name", message: "must be short" }, "name", "It must be short."],
  [{ field: "name.first", message: "must be short" }, "name", "All that is wrong."],
  [{ field: 'headers["X-A"]' }, "headers", "All that is wrong."],
  [{ field: "waits[2]" }, "waits", "All that is wrong."],
  [{ field: "ordered.key" }, "key", "All that is wrong."],
  [{ field: "constructor" }, undefined, "All that is wrong."],
  [{}, undefined, "All that is wrong."],
])("of a form, a refusal with %j is about %j", (details, field, message) => {
  const fields = { name: "", headers: "", waits: "", key: "" };
  const failure = new ApiError(422, "All that is wrong.", details);
  expect(wrongField(failure, fields, { ordered: "key" })).toEqual({ field, message });
});

test.each([
  ["", "", "5 retries, the last 30 s after the first attempt."],
  ["6", "", "6 retries, the last 1 min 2 s after the first attempt."],
  ["0", "", "No retries."],
  ["", "0s, 1m", "2 retries, the last 1 min after the first attempt."],
  ["3", "0s 1m", "3 retries, the last 2 min after the first attempt."],
  ["21", "", undefined],
  ["many", "", undefined],
  ["", "soon", undefined],
])("says what %j retries with the waits %j come to", (max_retries, retry_schedule, sentence) => {
  expect(draftedRetries({ max_retries, retry_schedule }, RETRY_DEFAULTS)).toBe(sentence);
});

test("names the waits of a server's schedule, and of many only the first", () => {
  expect(waitsText(5, null)).toBe("0s, 2s, 4s, 8s, 16s");
  expect(waitsText(3, [0, 60_000])).toBe("0s, 1m, 1m");
  expect(waitsText(20, null)).toBe("0s, 2s, 4s, 8s, 16s, 32s, 64s and so on");
});
