import { expect, test } from "vitest";
import { eventsAnswer } from "../../src/client/answers.ts";
import { foreignAnswer, refusal } from "../../src/client/channel.ts";
import { batchBody } from "../../src/client/events.ts";
import { EvregError } from "../../src/domain/error.ts";
import type { NewEvent } from "../../src/domain/event.ts";
import { readEventLine } from "../../src/domain/publish-body.ts";
import { encodeJson, RawJson } from "../../src/json/raw-json.ts";

const payload = RawJson.fromText('{ "é": 1.0,\n "1": "𝄞" }');

test("a batch's body contains its items, whatever they are", () => {
  const events = [
    { action: "a.b", payload },
    { action: "a.b", payload, idempotency_key: 'k"1' },
    { action: 'é"\\', payload },
    // What no type allows still has to get to the server, which refuses it.
    { action: "a", payload, rowid: 1 },
    { action: "a", payload: { plain: true } },
    { action: 7, payload },
    { payload },
    { action: "a", payload, idempotency_key: undefined },
    null,
    "text",
  ] as unknown as NewEvent[];
  expect(Buffer.from(batchBody(events)).toString()).toBe(encodeJson({ events }));
  expect(Buffer.from(batchBody([])).toString()).toBe('{"events":[]}');
  const unread = [events[0]!, new EvregError("malformed", "No.")];
  expect(Buffer.from(batchBody(unread)).toString()).toBe(encodeJson({ events: [events[0], null] }));
});

test("the payload of a line is sent unchanged, with a key where the line has none", () => {
  const line = Buffer.from('{ "payload":{"é": 1.0}, "action":"a" }');
  const items = [readEventLine(line), readEventLine(line, () => 'k"1')];
  const event = '{"action":"a","payload":{"é": 1.0}';
  const body = `{"events":[${event}},${event},"idempotency_key":"k\\"1"}]}`;
  expect(Buffer.from(batchBody(items)).toString()).toBe(body);
});

test("events are read byte for byte, whatever came before them", () => {
  const events = [
    { rowid: 1, action: "a", payload, revision: 1, timestamped: "2026-01-01T00:00:00.000Z" },
    { rowid: 9_007_199_254_740_991, action: 'é"\\', payload, revision: -1.5e3, timestamped: "" },
    { rowid: 3, action: "a", payload, revision: 0, timestamped: null, more: { deep: [1] }, flag: true },
  ];
  const bytes = Buffer.from(encodeJson({ data: [null, ...events, ...events], meta: { accepted: 8 } }));
  const { data, rest } = eventsAnswer({ status: 200, headers: {}, bytes, target: "GET" });
  expect(encodeJson(data)).toBe(encodeJson([null, ...events, ...events]));
  expect(rest).toEqual({ meta: { accepted: 8 } });
});

test("a Retry-After from a server or a proxy is kept with its error", () => {
  const bytes = Buffer.from('{"error":"Not now.","details":{},"code":503}');
  const waitMs = (value: string): number | undefined =>
    refusal({ status: 503, headers: { "retry-after": value }, bytes, target: "POST" })?.retryAfterMs;
  expect(["2", "soon", "Thu, 01 Jan 2026 00:00:00 GMT"].map(waitMs)).toEqual([2_000, undefined, 0]);
  const html = { status: 502, headers: { "retry-after": "7" }, bytes: Buffer.from("<html>"), target: "POST" };
  expect(foreignAnswer(html)).toMatchObject({ code: "unreachable", retryAfterMs: 7_000 });
});
