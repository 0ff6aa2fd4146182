import { describe, expect, it, vi } from "vitest";
import { logAttempt, startAttempt } from "../../src/delivery/attempt.ts";
import type { SendResult } from "../../src/delivery/exchange.ts";
import { RequestBuilder } from "../../src/delivery/request.ts";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import { EngineCounts } from "../../src/metrics/counters.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import type { Claim } from "../../src/store/queue.ts";
import { ManualClock } from "../support/manual-clock.ts";

const CLAIM: Claim = {
  deliveryId: 1,
  claimId: 1,
  attempt: 1,
  failures: 0,
  event: { eventId: 1, action: "a", payload: Buffer.from("1"), timestampedMs: 0 },
  subscription: {
    subscriptionId: 1,
    application: "a",
    name: "s",
    handler: "https://a.example/",
    secret: "whsec_AAAA",
    maxRetries: 5,
    settings: NO_SETTINGS,
  },
};

/** Attempts of which each ends when the test says so. */
function sending() {
  const ends: ((result: SendResult) => void)[] = [];
  const parts: Parameters<typeof startAttempt>[0] = {
    clock: new ManualClock(),
    random: { bytes: (count) => new Uint8Array(count), fraction: () => 0.5 },
    counts: new EngineCounts(),
    requests: new RequestBuilder("1.2.3"),
    sender: {
      send(_request, done) {
        ends.push(done);
        return undefined;
      },
    },
  };
  return { parts, ends };
}

describe("attempts in flight", () => {
  it("end each by itself, once", () => {
    const { parts, ends } = sending();
    const results: string[] = [];
    for (let count = 0; count < 2; count += 1)
      startAttempt(parts, CLAIM, ({ ending }) => results.push(ending));
    ends[0]!({ statusCode: 200 });
    expect(results).toEqual(["delivered"]);
    ends[1]!({ statusCode: 500 });
    expect(results).toEqual(["delivered", "failed"]);
  });

  it("are logged with a wait that is never below zero", () => {
    const info = vi.fn<(fields: object) => void>();
    const result = {
      deliveryId: 1,
      claimId: 1,
      startedAtMs: 1_000,
      durationMs: 11,
      ending: "failed",
    } as const;
    const outcome = { kind: "stored", state: "pending", retryAtMs: 1_010 } as const;
    logAttempt({ ...silentLogger, info }, CLAIM, result, outcome, 1_011);
    expect(info.mock.lastCall?.[0]).toMatchObject({ retryInMs: 0 });
  });

  it("may break off as they start", () => {
    const { parts, ends } = sending();
    const broken = { ...CLAIM, subscription: { ...CLAIM.subscription, settings: undefined } };
    expect(() => startAttempt(parts, broken as unknown as Claim, () => {})).toThrow("headers");
    expect(ends).toEqual([]);
  });
});
