import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { onIdle } from "../../src/runtime/heap.ts";
import { ManualClock } from "../support/manual-clock.ts";

test("compacts once after work, and not during it", async () => {
  const clock = new ManualClock();
  let cpuMs = 400;
  let compacted = 0;
  const stop = onIdle(
    clock,
    () => cpuMs,
    () => {
      compacted += 1;
      // Compacting uses the CPU, but is no reason to compact again.
      cpuMs += 300;
    },
  );
  const seconds = async (count: number, msPerSecond: number): Promise<void> => {
    for (let second = 0; second < count; second += 1) {
      cpuMs += msPerSecond;
      await clock.advance(1_000);
    }
  };

  await seconds(4, 1);
  expect(compacted).toBe(0);
  await seconds(1, 1);
  expect(compacted).toBe(1);
  await seconds(60, 1);
  expect(compacted).toBe(1);
  await seconds(30, 500);
  expect(compacted).toBe(1);
  await seconds(10, 1);
  expect(compacted).toBe(2);
  // Light work that never ends, and heavy work.
  await seconds(290, 200);
  expect(compacted).toBe(2);
  await seconds(310, 200);
  expect(compacted).toBe(4);
  await seconds(1_000, 900);
  expect(compacted).toBe(4);
  await seconds(5, 200);
  expect(compacted).toBe(5);
  await seconds(2, 500);
  stop();
  await seconds(60, 1);
  expect(compacted).toBe(5);
});

/** What a program prints as JSON that has the functions of `heap.ts`. */
function printedBy(program: string): readonly number[] {
  const imports = `import { boundServerHeap, compactHeap } from ${JSON.stringify(new URL("../../src/runtime/heap.ts", import.meta.url).href)};`;
  const printed = execFileSync(process.execPath, ["--input-type=module", "--eval", imports + program], {
    encoding: "utf8",
    stdio: ["ignore", "pipe", "ignore"],
  });
  return JSON.parse(printed) as readonly number[];
}

test("the heap of a server shrinks when it is compacted, and not before the options are set", () => {
  const [filled = 0, without, shrunk] = printedBy(`
    const used = () => process.memoryUsage().heapUsed;
    let garbage = Array.from({ length: 400_000 }, (_, at) => ({ at, text: "x" + at }));
    const sizes = [used()];
    garbage = undefined;
    compactHeap();
    sizes.push(used());
    boundServerHeap();
    compactHeap();
    sizes.push(used());
    console.log(JSON.stringify(sizes));`);
  expect(without).toBeGreaterThan(filled * 0.9);
  expect(shrunk).toBeLessThan(filled * 0.5);
});

test("the heap for short-lived objects ends growing in time, and grows again after V8 has shrunk an idle one", () => {
  // In MiB, after much work, once shrunk, and after much work again.
  const [grown, shrunk, again] = printedBy(`
    import { setImmediate as turn } from "node:timers/promises";
    import { getHeapSpaceStatistics } from "node:v8";
    import { runInNewContext } from "node:vm";
    const size = () =>
      getHeapSpaceStatistics().find(({ space_name: name }) => name === "new_space").space_size / 2 ** 20;
    const work = async () => {
      let held = [];
      for (let step = 0; step < 200; step += 1) {
        held = [...held.slice(-60_000), ...Array.from({ length: 3_000 }, (_, at) => ({ at, text: "x" + at }))];
        await turn();
      }
      return held.length;
    };
    boundServerHeap();
    await work();
    const sizes = [size()];
    runInNewContext("gc")({ type: "major", execution: "sync", flavor: "last-resort" });
    sizes.push(size());
    await work();
    sizes.push(size());
    console.log(JSON.stringify(sizes));`);
  expect(shrunk).toBeLessThan(8);
  for (const size of [grown, again]) {
    expect(size).toBeGreaterThanOrEqual(16);
    expect(size).toBeLessThanOrEqual(32);
  }
});
