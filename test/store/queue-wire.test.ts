import { describe, expect, test } from "vitest";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import {
  CLAIM,
  claimAnswer,
  claimCall,
  ClaimedSubscriptions,
  finishCall,
  packResults,
  QUOTA,
  SUBSCRIPTION,
  unpackResults,
} from "../../src/store/libsql/queue/wire.ts";
import { columns } from "../../src/store/libsql/thread/columns.ts";
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

describe("results across the thread", () => {
  const bare: AttemptResult = {
    deliveryId: MAX,
    claimId: 2 ** 47 - 1,
    startedAtMs: 1_790_000_000_001.5,
    durationMs: 3,
    next: { kind: "delivered" },
  };
  const failed: AttemptResult = {
    ...bare,
    deliveryId: 7,
    statusCode: 503,
    response: "né",
    next: { kind: "retry", atMs: MAX },
    connection: { dnsMs: undefined, connectMs: 2, firstByteMs: 4 },
    slow: { untilMs: 9, handler: "https://h.example/" },
  };
  const refused: AttemptResult = {
    ...bare,
    errorCode: "address_refused",
    refusal: "",
    next: { kind: "gone", reason: "x", handler: "h" },
  };
  const calls = [bare, failed, refused].map((result, index) => finishCall(result, 10 + index, 99));

  test("are these bytes", () => {
    expect(packResults(calls)).toEqual({
      nowMs: 12,
      disableAfterMs: 99,
      rows:
        `[[9007199254740991,140737488355327,1790000000001.5,3,null,null,null,null,{"kind":"delivered"},null],` +
        `[7,140737488355327,1790000000001.5,3,null,503,null,3,{"kind":"retry","atMs":9007199254740991},` +
        `{"connection":{"connectMs":2,"firstByteMs":4},"slow":{"untilMs":9,"handler":"https://h.example/"}}],` +
        `[9007199254740991,140737488355327,1790000000001.5,3,null,null,"address_refused",0,{"kind":"gone","reason":"x","handler":"h"},null]]`,
    });
  });

  test("come out as they went in, each with the place of its text", () => {
    const [one, two, three] = unpackResults(structuredClone(packResults(calls)), 20);
    const common = { claimId: 2 ** 47 - 1, startedAtMs: 1_790_000_000_001.5, durationMs: 3, nowMs: 12 };
    const none = {
      latencyMs: null,
      statusCode: null,
      errorCode: null,
      disableAfterMs: 99,
      more: null,
      textOffset: 20,
    };
    expect(one).toEqual({ ...common, ...none, deliveryId: MAX, textBytes: null, next: bare.next });
    expect(two).toEqual({
      ...common,
      ...none,
      deliveryId: 7,
      statusCode: 503,
      textBytes: 3,
      next: failed.next,
      more: { connection: { connectMs: 2, firstByteMs: 4 }, slow: failed.slow },
    });
    const refusal = { errorCode: "address_refused", textBytes: 0, textOffset: 23, next: refused.next };
    expect(three).toEqual({ ...common, ...none, deliveryId: MAX, ...refusal });
  });
});

describe("claims across the thread", () => {
  test("ask with four numbers a subscription", () => {
    const quota = { leased: 1, capacity: 2, tier: 3 };
    const request = { nowMs: 1, leaseMs: 2, tiers: [], maxPayloadBytes: 3, defaultQuota: quota };
    const call = claimCall({ ...request, quotas: new Map([[MAX, quota]]) }, [5]);
    expect([...call.quotas]).toEqual([MAX, 1, 2, 3]);
    expect(QUOTA.at).toEqual({ id: 0, leased: 1, capacity: 2, tier: 3 });
    expect(call).toMatchObject({ ...request, excluded: [5] });
  });

  test("answer deliveries with their event and subscription, also with an empty payload", () => {
    const claim = { attempt: 2, failures: 1, subscriptionId: 3, timestampedMs: 4, action: "a.b" };
    const rows = [
      CLAIM.pack({ ...claim, deliveryId: MAX, eventId: MAX, payloadBytes: 2, isLate: 0 }),
      CLAIM.pack({ ...claim, deliveryId: 8, eventId: 6, payloadBytes: 0, isLate: 1 }),
      CLAIM.pack({ ...claim, deliveryId: 9, eventId: 5, payloadBytes: 7, isLate: 0 }),
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
      takers: [],
      unreadable: [],
      nextDueAtMs: 42,
      limitedTiers: [0],
    };
    const bytes = Uint8Array.from([0, 123, 125]).buffer;
    const answer = claimAnswer(structuredClone(reply), bytes, new ClaimedSubscriptions(undefined));
    expect(answer).toMatchObject({ nextDueAtMs: 42, limitedTiers: [0] });
    expect(
      answer.claims.map(({ deliveryId, claimId, attempt, failures, isLate, event }) => ({
        ids: [deliveryId, claimId, attempt, failures, isLate],
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
