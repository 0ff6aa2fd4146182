import { expect, test } from "vitest";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import {
  claimAnswer,
  ClaimedSubscriptions,
  type ClaimReply,
  type ClaimedSubscriptionRow,
} from "../../src/store/libsql/queue/wire.ts";

const MAX = Number.MAX_SAFE_INTEGER;

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
      { ...claim, deliveryId: MAX, eventId: MAX, payload: 0, isFromReplay: 0 },
      { ...claim, deliveryId: 7, eventId: MAX, payload: 0, isFromReplay: 0 },
      { ...claim, deliveryId: 8, eventId: 6, payload: 1, isFromReplay: 1 },
      { ...claim, deliveryId: 9, eventId: 5, payload: null, isFromReplay: 0 },
    ],
    subscriptions: JSON.stringify([subscription]),
    nextDueAtMs: 42,
    limitedTiers: [0],
  };
  const payloads = [Buffer.from("{}"), new Uint8Array(0)];
  const { claims, ...answer } = claimAnswer(
    JSON.parse(JSON.stringify(reply)) as ClaimReply,
    payloads,
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
