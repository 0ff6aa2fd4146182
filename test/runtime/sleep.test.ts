import { expect, test } from "vitest";
import { Sleep } from "../../src/runtime/clock.ts";
import { ManualClock } from "../support/manual-clock.ts";

test("a sleep ends with its time, not before", async () => {
  const clock = new ManualClock();
  let isOver = false;
  const slept = new Sleep(clock).forMs(100).then(() => (isOver = true));
  await clock.advance(99);
  expect(isOver).toBe(false);
  await clock.advance(1);
  await slept;
  expect(clock.pending).toBe(0);
});

test("a cut ends all that sleep, leaves no timer, and does not touch a later one", async () => {
  const clock = new ManualClock();
  const sleep = new Sleep(clock);
  const slept = Promise.all([sleep.forMs(100), sleep.forMs(200)]);
  sleep.cut();
  sleep.cut();
  await slept;
  expect(clock.pending).toBe(0);

  let isOver = false;
  const later = sleep.forMs(100).then(() => (isOver = true));
  await clock.advance(99);
  expect(isOver).toBe(false);
  await clock.advance(1);
  await later;
});
