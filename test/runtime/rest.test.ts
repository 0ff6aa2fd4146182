import { expect, test } from "vitest";
import { watchRest } from "../../src/runtime/rest.ts";
import { ManualClock } from "../support/manual-clock.ts";

test("tidies up once after each stretch of work, and not while there is any", async () => {
  const clock = new ManualClock();
  let cpuMs = 400;
  let tidied = 0;
  const stop = watchRest({
    clock,
    cpuMs: () => cpuMs,
    tidy: () => {
      tidied += 1;
      // Tidying is work for the processor, but none that would call for tidying.
      cpuMs += 300;
    },
  });
  const seconds = async (count: number, msPerSecond: number): Promise<void> => {
    for (let second = 0; second < count; second += 1) {
      cpuMs += msPerSecond;
      await clock.advance(1_000);
    }
  };

  await seconds(4, 1);
  expect(tidied).toBe(0);
  await seconds(1, 1);
  expect(tidied).toBe(1);
  await seconds(60, 1);
  expect(tidied).toBe(1);
  await seconds(30, 500);
  expect(tidied).toBe(1);
  await seconds(10, 1);
  expect(tidied).toBe(2);
  await seconds(2, 500);
  stop();
  await seconds(60, 1);
  expect(tidied).toBe(2);
});
