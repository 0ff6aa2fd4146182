import { describe, expect, test } from "vitest";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import {
  claimAnswer,
  ClaimedSubscriptions,
  type ClaimReply,
  finishedRow,
  type ClaimedSubscriptionRow,
} from "../../src/store/libsql/queue/wire.ts";
import { columns } from "../../src/store/libsql/thread/columns.ts";
import { ByteWriter } from "../../src/store/libsql/thread/protocol.ts";
import type { AttemptResult } from "../../src/store/queue.ts";

const MAX = Number.MAX_SAFE_INTEGER;

test("columns give SQL and arrays the same order", () => {
  const made = columns("id", "state", "due_ms");
  expect(made.values).toBe("value ->> 0 AS id, value ->> 1 AS state, value ->> 2 AS due_ms");
  expect(made.value("state")).toBe("value ->> 1");
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

test("an answer to claims is read with events that several deliveries share, also damaged ones and empty payloads", () => {
  const claim = { claimId: 11, attempt: 2, failures: 1, subscriptionId: 3, timestampedMs: 4, action: "a.b" };
  const subscription: ClaimedSubscriptionRow = {
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
  };
  const reply: ClaimReply = {
    rows: [
      { ...claim, deliveryId: MAX, eventId: MAX, payload: [1, 2], isFromReplay: 0 },
      { ...claim, deliveryId: 7, eventId: MAX, payload: [1, 2], isFromReplay: 0 },
      { ...claim, deliveryId: 8, eventId: 6, payload: [3, 0], isFromReplay: 1 },
      { ...claim, deliveryId: 9, eventId: 5, payload: null, isFromReplay: 0 },
    ],
    subscriptions: JSON.stringify([subscription]),
    nextDueAtMs: 42,
    limitedTiers: [0],
  };
  const bytes = Uint8Array.from([0, 123, 125]).buffer;
  const { claims, ...answer } = claimAnswer(
    JSON.parse(JSON.stringify(reply)) as ClaimReply,
    bytes,
    new ClaimedSubscriptions(undefined),
  );
  expect(answer).toEqual({ nextDueAtMs: 42, limitedTiers: [0] });
  expect(claims.map(({ event: _event, subscription: _subscription, ...rest }) => rest)).toEqual(
    reply.rows.map(({ deliveryId, isFromReplay }) => {
      return { deliveryId, claimId: 11, attempt: 2, failures: 1, isFromReplay: isFromReplay === 1 };
    }),
  );
  expect(claims[0]!.event).toBe(claims[1]!.event);
  expect(claims.map(({ event }) => event.payload && Buffer.from(event.payload).toString())).toEqual([
    "{}",
    "{}",
    "",
    undefined,
  ]);
  expect(claims[0]!.event).toMatchObject({ eventId: MAX, action: "a.b", timestampedMs: 4 });
  expect(claims[0]!.subscription).toEqual({
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
