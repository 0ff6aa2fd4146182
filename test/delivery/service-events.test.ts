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
