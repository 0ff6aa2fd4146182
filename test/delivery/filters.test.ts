import { describe, expect, it } from "vitest";
import type { Schemata } from "../../src/domain/action.ts";
import type { Subscription } from "../../src/domain/subscription.ts";
import { EngineCounts } from "../../src/metrics/counters.ts";
import { SHORT_CHECK_BYTES } from "../../src/schema/limits.ts";
import type { OffThreadResult } from "../../src/schema/validate/compile.ts";
import { claimRequest } from "../support/claim-request.ts";
import type { Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { type Bench, countingClaims, SECRET, useBench } from "./engine-setup.ts";

let bench: Bench;
let receiver: Receiver;

useBench((opened) => ({ bench, receiver } = opened));

const FRENCH: Schemata = { properties: { country: { const: "FR" } }, required: ["country"] };
const GERMAN: Schemata = { properties: { country: { const: "DE" } }, required: ["country"] };
const FR = '{"country":"FR"}';
const DE = '{"country":"DE"}';

function filtered(filter: Schemata): Promise<Subscription> {
  return bench.subscribe(receiver.url, 5, { filter });
}

/** Claims and sends until nothing is due. */
async function drain(parts: Parameters<Bench["once"]>[1] = {}): Promise<void> {
  for (;;) {
    const { due } = await bench.store.queue.backlog(bench.clock.now());
    if (due.deliveries === 0) return;
    await bench.once({}, parts);
  }
}

function countries(): string[] {
  return receiver.requests.map(({ body }) => {
    const { payload } = JSON.parse(body.toString()) as { payload: { country: string } };
    return payload.country;
  });
}

describe("a filter", () => {
  it("sends only matching events, and records the others as filtered", async () => {
    const subscription = await filtered(FRENCH);
    const other = await bench.store.catalog.createSubscription(
      {
        application: "tests",
        subscription: "all",
        action: subscription.action,
        handler: receiver.url,
        maxRetries: 5,
        active: true,
        secret: SECRET,
      },
      bench.clock.now(),
    );
    const counts = new EngineCounts();
    for (const payload of [FR, DE, '{"country":null}', "{}", FR])
      await bench.publish(subscription, 1, payload);
    await drain({ counts });

    expect(await bench.statuses(subscription)).toEqual({ delivered: 2, filtered: 3 });
    expect(await bench.statuses(other)).toEqual({ delivered: 5 });
    expect(countries().filter((country) => country === "FR")).toHaveLength(4);
    expect(receiver.requests).toHaveLength(7);
    const [one] = await bench.store.queue.list({
      subscription: subscription.rowid,
      status: "filtered",
      limit: 1,
    });
    expect(await bench.store.queue.find(one?.rowid ?? 0)).toMatchObject({
      attempt: 0,
      attempts: [],
      last_error: null,
      next_attempt_at: null,
      finished_at: new Date(bench.clock.now()).toISOString(),
    });
    expect(counts.finished).toEqual({ delivered: 7, failed: 0, filtered: 3 });
    expect(counts.deliveredAttempts).toBe(7);
    expect(bench.log.with("filtered")).toHaveLength(3);
  });

  it("is not checked between a failed attempt and its retry", async () => {
    const subscription = await filtered(FRENCH);
    await bench.publish(subscription, 1, FR);
    receiver.script({ status: 500 });
    await bench.once();
    await bench.update(subscription, { settings: { filter: GERMAN } });
    await bench.once();
    expect(await bench.delivery(subscription)).toMatchObject({ status: "delivered", attempt: 2 });
  });

  it("is checked again after an attempt that a crash interrupted, or that never started", async () => {
    const subscription = await filtered(GERMAN);
    await bench.publish(subscription, 1, FR);
    // Whoever has leased it is gone before the filter was asked.
    await bench.store.queue.claim(claimRequest({ nowMs: bench.clock.now(), leaseMs: 1 }));
    await bench.clock.advance(2);
    await bench.once();
    expect(await bench.delivery(subscription)).toMatchObject({
      status: "filtered",
      attempt: 1,
      attempts: [{ outcome: "returned" }],
    });
    expect(receiver.requests).toHaveLength(0);
  });

  it("is checked again, as it is by then, for what a person retries", async () => {
    const subscription = await filtered(GERMAN);
    await bench.publish(subscription, 1, FR);
    await bench.once();
    const { rowid } = await bench.untilStatus(subscription, "filtered");
    const again = async (): Promise<void> => {
      await bench.store.queue.retry(rowid, bench.clock.now());
      await bench.once();
    };
    await again();
    expect(await bench.delivery(subscription)).toMatchObject({ status: "filtered", attempt: 0 });
    await bench.update(subscription, { settings: { filter: FRENCH } });
    await again();
    expect(await bench.delivery(subscription)).toMatchObject({ status: "delivered", attempt: 1 });
    await bench.update(subscription, { settings: { filter: GERMAN } });
    await again();
    expect(await bench.delivery(subscription)).toMatchObject({ status: "filtered", attempt: 1 });
    await bench.update(subscription, { settings: { filter: null } });
    await again();
    expect(await bench.delivery(subscription)).toMatchObject({ status: "delivered", attempt: 2 });
    expect(receiver.requests).toHaveLength(2);
  });

  it("costs no capacity: excluded events are looked through by the hundred", async () => {
    const subscription = await filtered(FRENCH);
    for (let batch = 0; batch < 40; batch += 1) {
      await bench.publish(subscription, 99, DE);
      await bench.publish(subscription, 1, FR);
    }
    const { store, claims } = countingClaims(bench.store.queue);
    bench.engine({}, { store }).start();
    await receiver.received(40);
    await until("all to have ended", async () => {
      const { due, delivering } = await bench.store.queue.backlog(bench.clock.now());
      return due.deliveries + delivering.deliveries === 0;
    });
    expect(new Set(countries())).toEqual(new Set(["FR"]));
    expect(receiver.requests).toHaveLength(40);
    expect(Math.max(...claims)).toBeGreaterThan(50);
    // Nearly none was leased in vain.
    expect(claims.reduce((sum, count) => sum + count)).toBeLessThan(4_400);
  });

  it("looks through events after one that waits for an unreachable handler", async () => {
    const subscription = await filtered(FRENCH);
    await receiver.close();
    await bench.publish(subscription, 1, FR);
    await bench.publish(subscription, 1_000, DE);
    bench.started();
    await until("all others to be filtered", async () => {
      const { due, delivering, waiting } = await bench.store.queue.backlog(bench.clock.now());
      return due.deliveries + delivering.deliveries === 0 && waiting.deliveries === 1;
    });
    const [oldest] = await bench.store.queue.list({ status: "waiting", limit: 9 });
    expect(oldest).toMatchObject({ event_id: 1, last_error: "connection_refused" });
  });

  it("judges a large payload before its attempt, which does not begin if the engine stops meanwhile", async () => {
    const subscription = await filtered(FRENCH);
    const note = "x".repeat(SHORT_CHECK_BYTES);
    await bench.publish(subscription, 1, JSON.stringify({ country: "DE", note }));
    await bench.once();
    expect(await bench.delivery(subscription)).toMatchObject({
      status: "filtered",
      attempt: 0,
      attempts: [],
    });

    const other = await filtered(FRENCH);
    await bench.publish(other, 1, JSON.stringify({ country: "FR", note }));
    const asked = Promise.withResolvers<void>();
    const judged = Promise.withResolvers<OffThreadResult>();
    const longChecks = {
      check: () => {
        asked.resolve();
        return judged.promise;
      },
    };
    const engine = bench.started({}, { longChecks });
    await asked.promise;
    const stopped = engine.stop(60_000);
    judged.resolve({ failure: undefined, isDecided: true });
    await stopped;
    expect(await bench.delivery(other)).toMatchObject({ status: "pending", attempt: 0, attempts: [] });
    await bench.once();
    expect((await bench.delivery(other)).status).toBe("delivered");
    expect(receiver.requests).toHaveLength(1);
  });
});
