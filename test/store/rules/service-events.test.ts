import { describe, expect, it } from "vitest";
import type { Replay } from "../../../src/domain/replay.ts";
import { SERVICE_EVENT_SCHEMAS } from "../../../src/domain/service-events.ts";
import { compileSchema } from "../../../src/schema/validate/compile.ts";
import {
  deliveryFailed,
  replayFinished,
  subscriptionBlocked,
  subscriptionDeactivated,
} from "../../../src/store/rules/service-events.ts";

const NOW = Date.parse("2026-03-01T12:00:00.000Z");

const SUBSCRIPTION = {
  subscription_id: 3,
  application: "mailer",
  subscription: "welcome",
  action: "user.created",
  handler: "https://user:password@mailer.example:8443/hook?token=secret",
};
const DELIVERY = {
  ...SUBSCRIPTION,
  delivery_id: 1,
  event_id: 2,
  attempts: 4,
  last_error: "HTTP 500",
  published_ms: NOW - 60_000,
};
const REPLAY: Replay = {
  rowid: 7,
  subscription_id: 3,
  application: "mailer",
  subscription: "welcome",
  action: "user.created",
  selection: "missed",
  from: "2026-02-01T00:00:00.000Z",
  to: "2026-03-01T00:00:00.000Z",
  status: "done",
  reason: null,
  total: 3,
  queued: 3,
  skipped: 0,
  timestamped: "2026-03-01T11:00:00.000Z",
  finished_at: "2026-03-01T11:30:00.000Z",
};

const { handler: _handler, ...names } = SUBSCRIPTION;
const subscription = { ...names, handler_host: "mailer.example:8443" };
const delivery = {
  ...subscription,
  delivery_id: 1,
  event_id: 2,
  attempts: 4,
  last_error: "HTTP 500",
  published_at: "2026-03-01T11:59:00.000Z",
};
const { rowid, timestamped, ...replay } = REPLAY;
const AT = "2026-03-01T12:00:00.000Z";

describe("what is reported", () => {
  it.each([
    [deliveryFailed(DELIVERY, NOW), "evreg.delivery.failed", { ...delivery, failed_at: AT }],
    [subscriptionBlocked(DELIVERY, NOW), "evreg.subscription.blocked", { ...delivery, blocked_at: AT }],
    [
      subscriptionDeactivated(SUBSCRIPTION, "It was gone.", NOW),
      "evreg.subscription.deactivated",
      { ...subscription, reason: "It was gone.", deactivated_at: AT },
    ],
    [
      replayFinished(REPLAY, NOW),
      "evreg.replay.finished",
      { ...replay, replay_id: rowid, started_at: timestamped },
    ],
    [
      replayFinished({ ...REPLAY, finished_at: null }, NOW),
      "evreg.replay.finished",
      { ...replay, replay_id: rowid, started_at: timestamped, finished_at: AT },
    ],
  ] as const)("%j", (event, name, payload) => {
    expect(event).toEqual({ name, payload });
    expect(compileSchema(SERVICE_EVENT_SCHEMAS[name]).validate(payload)).toBeUndefined();
  });

  it("names no host where a handler is no address", () => {
    const event = deliveryFailed({ ...DELIVERY, handler: "" }, NOW);
    expect(event?.payload).toMatchObject({ handler_host: "" });
  });
});

it("nothing is reported of events about evreg itself, nor of a replay that goes on", () => {
  const action = "evreg.delivery.failed";
  expect([
    deliveryFailed({ ...DELIVERY, action }, NOW),
    subscriptionBlocked({ ...DELIVERY, action }, NOW),
    subscriptionDeactivated({ ...SUBSCRIPTION, action }, "It was gone.", NOW),
    replayFinished({ ...REPLAY, action }, NOW),
    replayFinished({ ...REPLAY, status: "running" }, NOW),
  ]).toEqual(Array.from({ length: 5 }, () => undefined));
});
