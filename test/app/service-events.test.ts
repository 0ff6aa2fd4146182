import { expect, test } from "vitest";
import { parseMetrics, valueOf } from "../support/prometheus.ts";
import { openReceiver } from "../support/open-receiver.ts";
import { dataFolder, LOOPBACK, ORDER_PLACED, start } from "./setup.ts";
import { RawJson } from "../../src/json/raw-json.ts";

test("a running server sends an event about a failed delivery at once, and counts it", async () => {
  const receiver = await openReceiver();
  receiver.answer = ({ path }) => ({ status: path.endsWith("/broken") ? 400 : 200 });
  const { evreg } = await start(dataFolder(), { delivery: LOOPBACK });
  await evreg.actions.create(ORDER_PLACED);
  const { action } = ORDER_PLACED;
  const publish = () => evreg.events.publish({ action, payload: RawJson.fromValue({ id: "1" }) });
  await publish();
  const subscribe = async (to: string, subscription: string) => {
    const handler = `${receiver.url}/${subscription}`;
    const input = { application: "ops", subscription, action: to, handler, max_retries: 0 };
    await evreg.subscriptions.create(input);
  };
  await subscribe("evreg.delivery.failed", "alerts");
  await subscribe(action, "broken");

  await publish();
  const [, failed] = await receiver.received(2);
  expect(failed).toMatchObject({
    path: "/hook/alerts",
    headers: { "x-evreg-event": "evreg.delivery.failed" },
  });

  const metrics = parseMetrics(await evreg.metrics());
  expect(valueOf(metrics, "evreg_events_published_total", { via: "service" })).toBe(1);
  expect(valueOf(metrics, "evreg_deliveries_queued_total", { by: "publish" })).toBe(1 + 1);
});
