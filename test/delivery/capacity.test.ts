import { expect, it } from "vitest";
import { capacityOf, processLimits } from "../../src/delivery/limits.ts";

const configured = { maxInFlight: 4_096, maxInFlightPerSubscription: 512 };
const GIB = 1_024 ** 3;

it.each([
  // Memory in GiB, descriptors, and what that allows.
  [16, 1_048_576, 4_096, 512, undefined],
  [16, Infinity, 4_096, 512, undefined],
  [16, 1_024, 480, 240, "descriptors"],
  [16, 256, 96, 48, "descriptors"],
  [16, 10, 1, 1, "descriptors"],
  [2, 1_048_576, 4_096, 512, undefined],
  [0.5, 1_048_576, 1_024, 512, "memory"],
  [0.25, 1_024, 480, 240, "descriptors"],
  [0.125, 1_024, 256, 128, "memory"],
])(
  "with %s GiB and %s descriptors %i may be in flight, %i for one subscription",
  (memory, descriptors, inFlight, perSubscription, boundBy) => {
    const limits = { memoryBytes: memory * GIB, descriptors };
    expect(capacityOf(configured, limits)).toEqual({ inFlight, perSubscription, boundBy });
  },
);

it("goes by what this process may use", () => {
  const { memoryBytes, descriptors } = processLimits();
  expect(memoryBytes).toBeGreaterThan(64 * 1_024 ** 2);
  if (process.platform === "linux") expect(descriptors).toBeGreaterThan(100);
});
