import { expect, test } from "vitest";
import { streamTurns } from "../../src/service/stream/turns.ts";

test("readers of streams rest as long as a step took that was longer than their slice", async () => {
  await streamTurns.yield();
  const startedMs = performance.now();
  while (performance.now() - startedMs < 30);
  const endedMs = performance.now();
  await streamTurns.yield();
  expect(performance.now() - endedMs).toBeGreaterThanOrEqual(29);
});
