import { describe, expect, test } from "vitest";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import {
  CLAIM,
  claimAnswer,
  claimCall,
  ClaimedSubscriptions,
  finishedRow,
  SUBSCRIPTION,
} from "../../src/store/libsql/queue/wire.ts";
import { columns } from "../../src/store/libsql/thread/columns.ts";
import { ByteWriter } from "../../src/store/libsql/thread/protocol.ts";
import type { AttemptResult } from "../../src/store/queue.ts";

const MAX = Number.MAX_SAFE_INTEGER;

describe("columns", () => {
  const made = columns("id", "state", "due_ms");

  test("give SQL and arrays the same order", () => {
    expect(made.values).toBe("value ->> 0 AS id, value ->> 1 AS state, value ->> 2 AS due_ms");
    expect(made.value("state")).toBe("value ->> 1");
    expect(made.select({ due_ms: "d.due_ms", id: "d.rowid", state: "3" })).toBe(
      "json_array(d.rowid, 3, d.due_ms)",
    );
    expect(made.pack({ due_ms: null, state: 0, id: MAX })).toEqual([MAX, 0, null]);
    expect([made.count, made.at]).toEqual([3, { id: 0, state: 1, due_ms: 2 }]);
  });
});

describe("a result to be stored", () => {
  const result: AttemptResult = {
    deliveryId: MAX,
    claimId: 2 ** 47 - 1,
    startedAtMs: 1_790_000_000_001.5,
    durationMs: 3,
    ending: "delivered",
  };

  test.each([
    ["no text", {}, null, ""],
    ["what was answered", { statusCode: 503, response: "n\u00e9" }, 3, "n\u00e9"],
    ["why TLS failed", { tlsReason: "expired" }, 7, "expired"],
    ["why the address was refused, which may be empty", { refusal: "" }, 0, ""],
    ["a text with half a surrogate pair, which has no UTF-8", { response: "\ud83d" }, 3, "\ufffd"],
  ] as const)("has %s", (_, more, textBytes, text) => {
    const bytes = new ByteWriter();
    bytes.add(Buffer.from("before"));
    const row = finishedRow({ ...result, ...more }, 12, {}, bytes);
    expect(row).toMatchObject({ textBytes, textOffset: textBytes === null ? 0 : 6, nowMs: 12 });
    expect(Buffer.from(bytes.pack() ?? new ArrayBuffer(0)).toString()).toBe(`before${text}`);
    expect(JSON.parse(JSON.stringify(row))).toEqual(row);
  });
});

describe("claims across the thread", () => {
  test("ask with a quota for each subscription", () => {
    const quota = { leased: 1, capacity: 2, tier: 3 };
    const request = { nowMs: 1, leaseMs: 2, tiers: [], maxPayloadBytes: 3, defaultQuota: quota };
    const call = claimCall({ ...request, quotas: new Map([[MAX, quota]]) });
    expect(call).toMatchObject(request);
    expect(JSON.parse(call.quotas)).toEqual([[MAX, quota]]);
  });

  test("answer deliveries with their event and subscription, also with an empty payload", () => {
    const claim = { attempt: 2, failures: 1, subscriptionId: 3, timestampedMs: 4, action: "a.b" };
    const rows = [
      CLAIM.pack({ ...claim, deliveryId: MAX, eventId: MAX, payloadBytes: 2, isFromReplay: 0 }),
      CLAIM.pack({ ...claim, deliveryId: 8, eventId: 6, payloadBytes: 0, isFromReplay: 1 }),
      CLAIM.pack({ ...claim, deliveryId: 9, eventId: 5, payloadBytes: 7, isFromReplay: 0 }),
    ];
    expect(JSON.stringify(rows[0])).toBe(`[9007199254740991,2,1,3,9007199254740991,2,4,"a.b",0]`);
    const subscription = SUBSCRIPTION.pack({
      subscriptionId: 3,
      application: "billing",
      name: "invoices",
      handler: "https://h.example/",
      maxRetries: 5,
      secret: "s",
      previousSecret: "before",
      previousUntilMs: 77,
      bearer: "secret",
      bearerToken: null,
      settings: null,
    });
    const reply = {
      claimId: 11,
      rows: JSON.stringify(rows),
      subscriptions: JSON.stringify([subscription]),
      offset: 1,
      damaged: [5],
      consumers: [],
      nextDueAtMs: 42,
      limitedTiers: [0],
    };
    const bytes = Uint8Array.from([0, 123, 125]).buffer;
    const answer = claimAnswer(structuredClone(reply), bytes, new ClaimedSubscriptions(undefined));
    expect(answer).toMatchObject({ nextDueAtMs: 42, limitedTiers: [0] });
    expect(
      answer.claims.map(({ deliveryId, claimId, attempt, failures, isFromReplay, event }) => ({
        ids: [deliveryId, claimId, attempt, failures, isFromReplay],
        event: { ...event, payload: event.payload && Buffer.from(event.payload).toString() },
      })),
    ).toEqual([
      {
        ids: [MAX, 11, 2, 1, false],
        event: { eventId: MAX, action: "a.b", timestampedMs: 4, payload: "{}" },
      },
      { ids: [8, 11, 2, 1, true], event: { eventId: 6, action: "a.b", timestampedMs: 4, payload: "" } },
      {
        ids: [9, 11, 2, 1, false],
        event: { eventId: 5, action: "a.b", timestampedMs: 4, payload: undefined },
      },
    ]);
    expect(answer.claims[0]!.subscription).toEqual({
      subscriptionId: 3,
      application: "billing",
      name: "invoices",
      handler: "https://h.example/",
      maxRetries: 5,
      secret: "s",
      previous: { secret: "before", untilMs: 77 },
      settings: NO_SETTINGS,
    });
  });
});
