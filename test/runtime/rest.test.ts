import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { watchRest } from "../../src/runtime/heap.ts";
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
  // Light work that never rests, and heavy work.
  await seconds(290, 200);
  expect(tidied).toBe(2);
  await seconds(310, 200);
  expect(tidied).toBe(4);
  await seconds(1_000, 900);
  expect(tidied).toBe(4);
  await seconds(5, 200);
  expect(tidied).toBe(5);
  await seconds(2, 500);
  stop();
  await seconds(60, 1);
  expect(tidied).toBe(5);
});

test("the heap shrinks once V8 has been given the option, also in a thread that was there before", () => {
  const told = execFileSync(process.execPath, ["--input-type=module", "--eval", SHRINKING], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  const [filled, without, shrunk] = JSON.parse(told) as [number, number, number];
  expect(without).toBeGreaterThan(filled * 0.9);
  expect(shrunk).toBeLessThan(filled * 0.5);
});

/** Tells the heap in use: full of garbage, after `shrinkHeap` without the option, and with it. */
const SHRINKING = `
  import { setFlagsFromString } from "node:v8";
  import { shrinkHeap } from ${JSON.stringify(new URL("../../src/runtime/heap.ts", import.meta.url).href)};
  const used = () => process.memoryUsage().heapUsed;
  let garbage = Array.from({ length: 400_000 }, (_, at) => ({ at, text: "x" + at }));
  const told = [used()];
  garbage = undefined;
  shrinkHeap();
  told.push(used());
  setFlagsFromString("--expose-gc");
  shrinkHeap();
  told.push(used());
  console.log(JSON.stringify(told));
`;
