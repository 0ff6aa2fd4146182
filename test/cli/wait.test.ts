import { expect, test } from "vitest";
import { progressOf } from "../../src/cli/io/progress.ts";
import { pollDeliveries } from "../../src/cli/publish/wait.ts";
import type { Delivery, DeliveryStatus } from "../../src/domain/delivery.ts";

function delivery(status: DeliveryStatus, rowid = 1): Delivery {
  return {
    rowid,
    event_id: 42,
    subscription_id: 1,
    application: "billing",
    subscription: "invoices",
    action: "order.created",
    status,
    attempt: 1,
    next_attempt_at: null,
    last_error: null,
    timestamped: "2027-01-31T10:20:30.400Z",
    finished_at: null,
  };
}

/** Deliveries that go through the given states, one step a look; time moves only by sleeping. */
function follow(
  steps: readonly (readonly DeliveryStatus[])[],
  timeoutMs?: number,
  interruptAfter = Infinity,
) {
  let nowMs = 0;
  let look = -1;
  const sleeps: number[] = [];
  const told: string[] = [];
  const controller = new AbortController();
  const read = async () => {
    look = Math.min(look + 1, steps.length - 1);
    return (steps[look] ?? []).map((status, at) => delivery(status, at + 1));
  };
  const followed = pollDeliveries(read, {
    signal: controller.signal,
    timeoutMs,
    nowMs: () => nowMs,
    sleep: async (delayMs, signal) => {
      if (sleeps.length >= interruptAfter) controller.abort();
      signal.throwIfAborted();
      sleeps.push(delayMs);
      nowMs += delayMs;
    },
    waiting: (deliveries) => void told.push(progressOf(deliveries)),
  });
  return followed.then(({ end, deliveries }) => ({
    end,
    states: deliveries.map(({ status }) => status),
    sleeps,
    told,
    nowMs,
  }));
}

test("waiting ends when every delivery has ended, in whatever state", async () => {
  const steps = [
    ["pending", "pending"],
    ["delivered", "waiting"],
    ["delivered", "failed"],
  ] as const;
  expect(await follow(steps)).toMatchObject({ end: "final", states: ["delivered", "failed"] });
  expect(await follow([["pending"], ["filtered"]])).toMatchObject({ end: "final", states: ["filtered"] });
});

test("waiting ends at once for an event without deliveries", async () => {
  expect(await follow([[]])).toMatchObject({ end: "final", states: [], sleeps: [] });
});

test("polls soon at first, then about once a second", async () => {
  const steps = [...Array.from({ length: 40 }, () => ["waiting"] as const), ["delivered"] as const];
  const { sleeps } = await follow(steps);
  expect(sleeps[0]).toBeLessThanOrEqual(50);
  expect(sleeps.at(-1)).toBe(1_000);
  expect(sleeps).toEqual(sleeps.toSorted((a, b) => a - b));
});

test("a time limit ends the wait to the millisecond", async () => {
  expect(await follow([["waiting"]], 1_500)).toMatchObject({ end: "timeout", nowMs: 1_500 });
});

test("waiting ends when only held deliveries remain", async () => {
  expect(await follow([["delivered", "held"]])).toMatchObject({ end: "held" });
});

test("an interruption ends the wait with the last state seen", async () => {
  expect(await follow([["waiting"]], undefined, 3)).toMatchObject({
    end: "interrupted",
    states: ["waiting"],
  });
});

test("progress is reported before each wait", async () => {
  const steps = [
    ["pending", "pending", "delivering"],
    ["delivered", "waiting", "failed"],
    ["delivered"],
  ] as const;
  const { told } = await follow(steps);
  expect(told).toEqual([
    "2 pending, 1 delivering; 3 attempts so far",
    "1 waiting, 1 delivered, 1 failed; 3 attempts so far",
  ]);
});
