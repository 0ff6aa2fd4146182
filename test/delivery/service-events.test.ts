import { Webhook } from "standardwebhooks";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { Subscription } from "../../src/domain/subscription.ts";
import { startReceiver, type Receiver } from "../support/receiver.ts";
import { Bench, SECRET } from "./engine-setup.ts";

let bench: Bench;
let failing: Receiver;
let operator: Receiver;

beforeEach(async () => {
  bench = await Bench.open();
  [failing, operator] = await Promise.all([startReceiver(), startReceiver()]);
  failing.answer = () => ({ status: 500 });
});

afterEach(async () => {
  await bench.close();
  await Promise.all([failing.close(), operator.close()]);
});

function watch(action: string): Promise<Subscription> {
  return bench.store.catalog.createSubscription(
    {
      application: "ops",
      subscription: action,
      action,
      handler: operator.url,
      maxRetries: 1,
      active: true,
      secret: SECRET,
    },
    bench.clock.now(),
  );
}

it("a final failure is reported at once by one signed event", async () => {
  await watch("evreg.delivery.failed");
  const subscription = await bench.subscribe(failing.url, 1);
  const [event] = await bench.publish(subscription);
  bench.engine().start();
  const [request] = await operator.received(1);
  const body = new Webhook(SECRET).verify(request?.body ?? "", request?.headers ?? {});
  const { rowid: delivery_id } = await bench.delivery(subscription);
  expect(body).toMatchObject({
    action: "evreg.delivery.failed",
    delivery_attempt: 1,
    payload: {
      delivery_id,
      event_id: event,
      subscription_id: subscription.rowid,
      handler_host: `127.0.0.1:${failing.port}`,
      attempts: 2,
      last_error: "HTTP 500",
    },
  });
  await bench.advance(3_600_000, 600_000);
  expect(operator.requests).toHaveLength(1);
  expect(failing.requests).toHaveLength(2);
});

it("each of many failures at once is reported once", async () => {
  const watching = await watch("evreg.delivery.failed");
  const subscription = await bench.subscribe(failing.url, 0);
  const events = await bench.publish(subscription, 9);
  bench.engine().start();
  await bench.untilDelivered(watching, 9);
  const told = operator.requests.map(
    ({ body }) => JSON.parse(body.toString()) as { payload: { event_id: number } },
  );
  expect(told.map(({ payload }) => payload.event_id).toSorted((a, b) => a - b)).toEqual(events);
  expect(failing.requests).toHaveLength(9);
  expect(bench.log.with("its delivery had moved on")).toEqual([]);
});

it.each([500, 410])("an operator's handler that answers %i causes no further events", async (status) => {
  operator.answer = () => ({ status });
  const watching = await Promise.all(
    ["evreg.delivery.failed", "evreg.subscription.deactivated"].map((action) => watch(action)),
  );
  failing.answer = () => ({ status: 410 });
  const subscription = await bench.subscribe(failing.url, 0);
  await bench.publish(subscription);
  bench.engine().start();
  await operator.received(2);
  await Promise.all(watching.map((one) => bench.untilStatus(one, "failed")));
  await bench.advance(3_600_000, 600_000);
  const { total } = await bench.store.events.list({ order: "desc", limit: 1, page: 1 });
  expect(total).toBe(3);
  expect(operator.requests).toHaveLength(status === 410 ? 2 : 4);
});
