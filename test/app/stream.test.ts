import { expect, test } from "vitest";
import { connect } from "../../src/client/client.ts";
import type { EvregError } from "../../src/domain/error.ts";
import type { StreamMessage } from "../../src/domain/stream.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { readTokenFile } from "../../src/runtime/find-server.ts";
import { openReceiver } from "../support/open-receiver.ts";
import { closing, dataFolder, LOOPBACK, ORDER_PLACED, start } from "./setup.ts";

test("a running server shows the result of each attempt", async () => {
  const receiver = await openReceiver();
  receiver.answer = ({ path }) => ({
    status: path.endsWith("gone") ? 410 : path.endsWith("down") ? 500 : 204,
  });
  const data = dataFolder();
  const server = await start(data, { delivery: LOOPBACK });
  const evreg = closing(connect({ url: server.url, token: readTokenFile(data)! }));
  await evreg.actions.create(ORDER_PLACED);
  const { action } = ORDER_PLACED;
  const subscribe = async (subscription: string, more = {}): Promise<number> => {
    const handler = `${receiver.url}/${subscription}`;
    const input = { application: "ops", subscription, action, handler, max_retries: 1, ...more };
    return (await evreg.subscriptions.create(input)).data.rowid;
  };
  const up = await subscribe("up");
  // Its second attempt would come at once.
  const down = await subscribe("down", { retry_schedule: [3_600_000] });
  const gone = await subscribe("gone");
  const none = await subscribe("none", { filter: { required: ["absent"] } });
  const stream = await evreg.stream({ topics: ["events", "deliveries"] });
  const messages: StreamMessage[] = [];
  const reading = (async () => {
    for await (const message of stream) {
      messages.push(message);
      if (message.type === "ready") await evreg.events.publish({ action, payload: RawJson.fromText("{}") });
      if (messages.filter(({ type }) => type === "delivery").length === 4) break;
    }
  })();
  await reading;
  const [, event] = messages;
  expect(event).toMatchObject({ type: "event", data: { rowid: 1, action, application: "shop" } });
  const results = messages.flatMap(({ type, data: one }) => (type === "delivery" ? [one] : []));
  const expected = [
    [up, "up", "delivered", 1, 204],
    [down, "down", "waiting", 1, 500],
    [gone, "gone", "failed", 1, 410],
    [none, "none", "filtered", 0, null],
  ] as const;
  expect(results.toSorted((a, b) => a.subscription_id - b.subscription_id)).toEqual(
    expected.map(([subscription_id, subscription, status, attempt, status_code]) => ({
      event_id: 1,
      application: "ops",
      action,
      timestamped: expect.stringMatching(/Z$/) as string,
      rowid: expect.any(Number) as number,
      subscription_id,
      subscription,
      status,
      attempt,
      status_code,
      error_code: null,
      duration_ms: attempt === 0 ? null : (expect.any(Number) as number),
    })),
  );

  const failed = await evreg.stream({
    topics: ["deliveries"],
    status: "failed",
    subscription: gone,
    since: "1h",
  });
  for await (const { data: shown } of failed) {
    expect(shown).toMatchObject({ status: "failed", subscription_id: gone });
    break;
  }
});

test("a client goes on where it was once its server has started again, and gives up where its token does not hold", async () => {
  const data = dataFolder();
  const server = await start(data);
  const token = readTokenFile(data)!;
  const port = Number(new URL(server.url).port);
  const evreg = closing(connect({ url: server.url, token }));
  await evreg.actions.create(ORDER_PLACED);
  const publish = (to = server) =>
    to.evreg.events.publish({ action: ORDER_PLACED.action, payload: RawJson.fromText("{}") });
  const broken: EvregError["code"][] = [];
  const stream = await evreg.stream(
    { topics: ["events", "deliveries"] },
    { disconnected: ({ code }) => broken.push(code) },
  );
  const messages = stream[Symbol.asyncIterator]();
  const next = async (): Promise<StreamMessage> => (await messages.next()).value as StreamMessage;
  expect(await next()).toMatchObject({ type: "ready" });
  await publish();
  expect(await next()).toMatchObject({ data: { rowid: 1 } });
  const stopped = performance.now();
  await server.stop();
  expect(performance.now() - stopped).toBeLessThan(1_500);
  const again = await start(data, { port });
  await publish(again);
  expect(await next()).toMatchObject({ type: "gap", data: { reason: "restart", topics: ["deliveries"] } });
  expect(await next()).toMatchObject({ data: { rowid: 2 } });
  const early = await again.evreg.stream({ topics: ["deliveries"], since: "1h" });
  for await (const message of early) {
    const complete_since = expect.stringMatching(/Z$/) as string;
    const gap = { reason: "overrun", topics: ["deliveries"], missed: null, complete_since };
    expect(message).toMatchObject({ type: "gap", data: gap });
    break;
  }
  expect(broken.length).toBeGreaterThan(0);
  expect(new Set(broken)).toEqual(new Set(["unreachable"]));

  await next();
  const { data: other } = await again.evreg.tokens.create({ name: "other", scopes: ["admin"] });
  const [own] = (await again.evreg.tokens.list()).data;
  await again.evreg.tokens.revoke(own!.rowid);
  const waiting = next();
  await again.stop();
  const last = await start(data, { port });
  await expect(waiting).rejects.toMatchObject({ code: "unauthorized" });
  await last.stop();
  expect(other.token).not.toBe("");
});
