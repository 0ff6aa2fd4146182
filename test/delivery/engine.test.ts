import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import type { Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { type Bench, countingClaims, SECRET, portWith, useBench } from "./engine-setup.ts";

let bench: Bench;
let receiver: Receiver;
useBench((opened) => ({ bench, receiver } = opened));

describe("a delivery", () => {
  it("carries the event as published, signed, and is recorded", async () => {
    const subscription = await bench.subscribe(receiver.url);
    const payload = '{ "2":1, "1":12345678901234567890, "t":"\\u00e9 é" }';
    const [event] = await bench.publish(subscription, 1, payload);
    await bench.once();

    const [request] = await receiver.received(1);
    expect(request?.body.toString()).toBe(
      `{"event_id":"${event}","action":"${subscription.action}","payload":${payload},"timestamp":"${new Date(bench.clock.now()).toISOString()}","delivery_attempt":1}`,
    );
    expect(new Webhook(SECRET).verify(request?.body ?? "", request?.headers ?? {})).toMatchObject({
      event_id: String(event),
    });
    expect(request?.headers).toMatchObject({
      "content-type": "application/json",
      "user-agent": "evreg/1.2.3",
      authorization: `Bearer ${SECRET}`,
      "x-evreg-event": subscription.action,
      "x-evreg-delivery": `${event}_1`,
    });
    expect(await bench.delivery(subscription)).toMatchObject({
      status: "delivered",
      attempt: 1,
      next_attempt_at: null,
      last_error: null,
      attempts: [{ attempt: 1, outcome: "delivered", status_code: 200, error_code: null, response: null }],
    });
  });

  it("fails visibly without a request while its secret cannot be read, and is sent once there is another", async () => {
    const subscription = await bench.withEvents(1, receiver.url, 1);
    const unreadable = portWith(bench.store.queue, {
      async claim(request) {
        const answer = await bench.store.queue.claim(request);
        const claims = answer.claims.map((claim) => ({
          ...claim,
          subscription: { ...claim.subscription, secret: undefined },
        }));
        return { ...answer, claims };
      },
    });
    await bench.once({}, { store: unreadable });
    expect(await bench.delivery(subscription)).toMatchObject({
      status: "waiting",
      last_error: "secret_unreadable",
      attempts: [{ outcome: "failed", status_code: null, error_code: "secret_unreadable" }],
    });
    expect(receiver.accepted).toBe(0);
    await bench.once();
    expect(await bench.delivery(subscription)).toMatchObject({ status: "delivered", attempt: 2 });
  });

  it("to a forbidden address fails without a connection, and is retried", async () => {
    const subscription = await bench.withEvents(1, receiver.url);
    await bench.once({ allowNetworks: [] });
    expect(receiver.accepted).toBe(0);
    const refusal = expect.stringMatching(
      /^Deliveries to 127\.0\.0\.1 are not allowed: it is .*delivery\.allowNetworks\.$/,
    );
    expect(await bench.delivery(subscription)).toMatchObject({
      status: "waiting",
      last_error: "address_refused",
      attempts: [
        { outcome: "failed", status_code: null, error_code: "address_refused", response: null, refusal },
      ],
    });
    expect(bench.log.with("will be retried")[0]?.fields["refusal"]).toEqual(refusal);
  });
});

/** Advances to a millisecond before the wait is over, expects silence, and then the next request. */
async function expectRetryAfter(waitMs: number, requests: number): Promise<void> {
  await bench.clock.advance(waitMs - 1);
  expect(receiver.requests).toHaveLength(requests - 1);
  await bench.clock.advance(1);
  await receiver.received(requests);
}

describe("the retry schedule", () => {
  it("is 0, 2, 4, 8, 16 s, then the delivery has failed", async () => {
    receiver.answer = () => ({ status: 500, body: "not today" });
    const subscription = await bench.withEvents(1, receiver.url);
    bench.engine({}, { random: { bytes: (n) => new Uint8Array(n), fraction: () => 0 } }).start();
    await bench.clock.advance(0);
    // Two attempts, as the first retry is immediate.
    await receiver.received(1);
    await bench.untilStatus(subscription, "waiting");
    await bench.clock.advance(0);
    await receiver.received(2);
    for (const [index, waitMs] of [2_000, 4_000, 8_000, 16_000].entries()) {
      await bench.untilStatus(subscription, "waiting");
      await until("the retry to be planned", () => bench.clock.nextTimerMs !== undefined);
      const planned = Date.parse((await bench.delivery(subscription)).next_attempt_at ?? "");
      expect(planned - bench.clock.now()).toBe(waitMs);
      await expectRetryAfter(waitMs, index + 3);
    }
    const delivery = await bench.untilStatus(subscription, "failed");
    expect(receiver.requests).toHaveLength(6);
    expect(
      delivery.attempts.map(({ attempt, status_code, response }) => [attempt, status_code, response]),
    ).toEqual([1, 2, 3, 4, 5, 6].map((attempt) => [attempt, 500, "not today"]));
    const attempts = receiver.requests.map(({ headers }) => headers["x-evreg-delivery"]!.split("_")[1]);
    expect(attempts.map(Number)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(new Set(receiver.requests.map((request) => request.headers["webhook-id"])).size).toBe(1);
    // For good: nothing more comes of it.
    await bench.clock.advance(24 * 3_600_000);
    expect(receiver.requests).toHaveLength(6);
  });
});

describe("what did not fit into a claim", () => {
  it("is claimed next, without waiting", async () => {
    const quick = await Promise.all(Array.from({ length: 9 }, () => bench.subscribe(receiver.url)));
    const engine = bench.started();
    for (const subscription of quick) await bench.publish(subscription);
    engine.wake();
    for (const subscription of quick) await bench.untilDelivered(subscription, 1);
    const slow = await bench.subscribe(receiver.url);
    const { promise: isTime, resolve: answer } = Promise.withResolvers<void>();
    receiver.script({ after: isTime });
    await bench.publish(slow);
    engine.wake();
    await receiver.received(10);
    await bench.clock.advance(2_000);
    answer();
    await bench.untilDelivered(slow, 1);
    // Together more than the payloads of one claim, the last of them for the slow one.
    const payload = JSON.stringify("x".repeat(900_000));
    const records = await Promise.all([...quick, slow].map((one) => bench.recordOf(one, payload)));
    await bench.store.events.record(records, bench.clock.now(), { atomic: true });
    engine.wake();
    await bench.untilDelivered(slow, 2);
  });
});

describe("fairness", () => {
  it("delivers to a handler while many others at its origin hang", async () => {
    receiver.answer = ({ path }) => (path === "/hang" ? "hang" : {});
    const healthy = await bench.withEvents(1, receiver.url);
    const engine = bench.started({ maxInFlight: 32, maxInFlightPerSubscription: 16 });
    await bench.untilDelivered(healthy, 1);
    const hanging = receiver.url.replace("/hook", "/hang");
    for (let count = 0; count < 40; count += 1) await bench.publish(await bench.subscribe(hanging), 5);
    engine.wake();
    await until("some to hang", () => receiver.requests.length > 5);
    await bench.advance(3_000);
    await bench.publish(healthy, 100);
    engine.wake();
    await bench.untilDelivered(healthy, 101);
    expect(receiver.open).toBeLessThanOrEqual(32);
  });
});

describe("an idle engine", () => {
  it("reads nothing from the store until something is due", async () => {
    const { store, claims } = countingClaims(bench.store.queue);
    receiver.script({ status: 500, headers: { "retry-after": "3600" } });
    const subscription = await bench.withEvents(1, receiver.url);
    bench.engine({}, { store }).start();
    await bench.untilStatus(subscription, "waiting");
    await until("the engine to plan the retry", () => bench.clock.pending === 2);
    const before = claims.length;
    await bench.clock.advance(3_599_999);
    expect(claims).toHaveLength(before);
    await bench.clock.advance(1);
    await bench.untilStatus(subscription, "delivered");
  });
});

describe("what is logged", () => {
  it("is one line for each attempt, without secrets, paths or queries", async () => {
    receiver.script({ status: 500, body: "answer-text" });
    const subscription = await bench.subscribe(`${receiver.url}/path-token?token=query-token`);
    const [event] = await bench.publish(subscription, 1, '{"payload":"payload-text"}');
    await bench.once();
    await bench.once();
    const delivery = await bench.delivery(subscription);
    expect(bench.log.lines).toHaveLength(2);
    expect(bench.log.lines[0]?.fields).toMatchObject({
      delivery: delivery.rowid,
      event,
      subscription: subscription.rowid,
      attempt: 1,
      status: 500,
      durationMs: 0,
      handler: `http://127.0.0.1:${receiver.port}`,
    });
    expect(bench.log.lines[1]).toMatchObject({ message: "delivered", fields: { attempt: 2, status: 200 } });
    const text = JSON.stringify(bench.log.lines);
    for (const secret of [SECRET, "path-token", "query-token", "payload-text", "answer-text"]) {
      expect(text).not.toContain(secret);
    }
  });
});
