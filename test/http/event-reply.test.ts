import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import type { Event } from "../../src/domain/event.ts";
import { batchReply, eventListParts, eventReply } from "../../src/http/routes/events.ts";
import { isByteStream, type Reply, replyInParts, sizeOf } from "../../src/http/response.ts";
import { encodeJson, RawJson } from "../../src/json/raw-json.ts";

function eventOf(rowid: number, bytes: number, action = "order.created"): Event {
  const payload = RawJson.fromText(`{"é":"${"x".repeat(Math.max(0, bytes - 9))}"}`);
  return { rowid, action, payload, revision: 3, timestamped: "2026-03-14T09:26:53.000Z" };
}

function textOf({ body }: Reply): string {
  if (isByteStream(body)) throw new Error("an answer of events is held as a whole");
  return typeof body === "string" ? body : Buffer.concat(body).toString("utf8");
}

const BATCHES: [string, Event[]][] = [
  ["nothing", []],
  ["a few", [eventOf(1, 10), eventOf(2, 10, "user.seen"), eventOf(3, 10)]],
  ["500 small ones", Array.from({ length: 500 }, (_, index) => eventOf(index, 200))],
  [
    "1,000 with long names",
    Array.from({ length: 1_000 }, (_, index) => eventOf(index, 60, "x".repeat(120) + (index % 7))),
  ],
  ["large and small in turn", Array.from({ length: 60 }, (_, index) => eventOf(index, (index % 3) * 70_000))],
  ["one of 20 KB", [eventOf(1, 20_000)]],
  ["one of 3 MB", [eventOf(1, 3_000_000)]],
];

describe.each(BATCHES)("an answer of events: %s", (_, events) => {
  test("is the same document, however it is put together", async () => {
    const meta = { accepted: events.length, rejected: 0, replayed: 0 };
    const reply = batchReply({ data: events, errors: [], meta });
    expect(textOf(reply)).toBe(encodeJson({ data: events, errors: [], meta }));
    expect(sizeOf(reply.body)).toBe(Buffer.byteLength(textOf(reply)));
    const page = { total: 9, page: 1, per_page: 9 };
    const parts = [...events.map((event) => [event]), []].map((data, index) => ({
      data,
      meta: page,
      isLast: index === events.length,
    }));
    for (const pages of [parts, [{ data: events, meta: page, isLast: true }]]) {
      const list = await replyInParts(eventListParts(Readable.from(pages)));
      const whole = isByteStream(list.body) ? await text(list.body.chunks) : textOf(list);
      expect(whole).toBe(encodeJson({ data: events, meta: page }));
    }
    for (const event of events.slice(0, 2)) {
      expect(textOf(eventReply(200, event))).toBe(encodeJson({ data: event }));
    }
  });

  test("has a place for refused items", () => {
    const data = [null, ...events, null];
    const meta = { accepted: events.length, rejected: 2, replayed: 0 };
    expect(JSON.parse(textOf(batchReply({ data, errors: [], meta })))).toMatchObject({
      data: data.map((event) => (event === null ? null : { rowid: event.rowid, action: event.action })),
    });
  });
});

test("an ordinary batch is sent in one piece", () => {
  for (const [count, bytes] of [
    [500, 200],
    [1_000, 200],
    [100, 1_000],
  ] as const) {
    const data = Array.from({ length: count }, (_, index) => eventOf(index, bytes));
    const { body } = batchReply({ data, errors: [], meta: { accepted: count, rejected: 0, replayed: 0 } });
    expect(Array.isArray(body) && body.length).toBe(1);
  }
});
