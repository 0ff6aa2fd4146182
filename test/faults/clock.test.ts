import { expect, test } from "vitest";
import { type Bench, useBench } from "../delivery/engine-setup.ts";
import type { Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { report } from "./length.ts";

// The promise under test: a clock that is set loses nothing, a retry comes no earlier than planned (set forward: by that clock; set
// back: by the time that passes), and none comes later than planned.

const HOUR_MS = 3_600_000;
const EVENTS = 20;

let bench: Bench;
let receiver: Receiver;
useBench((opened) => ({ bench, receiver } = opened));

test.each([
  ["set forward an hour", HOUR_MS],
  ["set back an hour", -HOUR_MS],
])("a clock that is %s while retries wait loses nothing and sends nothing too early", async (_, stepMs) => {
  // The first two attempts of each fail, so that all wait for a time to come (the first retry is due at once).
  let failing = 2 * EVENTS;
  const early: string[] = [];
  const planned = new Map<string, number>();
  receiver.answer = ({ headers }) => {
    const [event = "", attempt] = (headers["x-evreg-delivery"] ?? "").split("_");
    if (attempt === "3" && bench.clock.now() < (planned.get(event) ?? Infinity) + Math.min(stepMs, 0))
      early.push(event);
    return { status: (failing -= 1) >= 0 ? 500 : 200 };
  };
  const subscription = await bench.subscribe(receiver.url);
  const events = await bench.publish(subscription, EVENTS);
  const engine = bench.engine();
  engine.start();
  await until("all to wait for their second retry", async () => {
    const { data } = {
      data: await bench.store.queue.list({ subscription: subscription.rowid, limit: 500 }),
    };
    return data.every(({ status, attempt }) => status === "waiting" && attempt === 2);
  });
  const waiting = await bench.store.queue.list({ subscription: subscription.rowid, limit: 500 });
  for (const one of waiting) planned.set(String(one.event_id), Date.parse(one.next_attempt_at ?? ""));

  bench.clock.set(bench.clock.now() + stepMs);
  // What is published after the step is not held up by it.
  const fresh = await bench.subscribe(receiver.url);
  await bench.publish(fresh, EVENTS);
  engine.wake();
  await bench.advance(3_000, 500);
  await bench.untilDelivered(fresh, EVENTS);

  await bench.untilDelivered(subscription, EVENTS);
  expect(early).toEqual([]);
  const sent = receiver.requests.map(({ headers }) => headers["x-evreg-delivery"]);
  expect(new Set(sent).size).toBe(sent.length);
  expect(sent).toHaveLength(4 * EVENTS);
  report(`clock moved ${stepMs / HOUR_MS} h`, {
    events: events.length + EVENTS,
    lost: 0,
    early: early.length,
  });
});
