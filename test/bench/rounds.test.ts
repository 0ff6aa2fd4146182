import { expect, it } from "vitest";
import { rateRows, ratio } from "./rounds.ts";

it("reports the median of the ratios of each round", () => {
  // The machine was half as fast in the second round, for both.
  expect(ratio([80, 30, 60], [100, 50, 100])).toBe(0.6);
});

it("compares the first server with the ceiling and the others with the first", () => {
  const rows = rateRows({
    scenario: "publish",
    ceiling: { name: "echo", rates: [100, 100, 100] },
    servers: new Map([
      ["empty", [70, 70, 80]],
      ["full", [70, 49, 72]],
    ]),
    target: 0.7,
    unit: "events",
    detail: undefined,
  });
  expect(rows).toMatchObject([
    { scenario: "publish", ceiling: "echo 100/s", measured: "70/s events", figure: "0.70", met: true },
    { scenario: "publish, full", ceiling: "empty 70/s", figure: "0.90", target: "≥ 0.90", met: true },
  ]);
});

it("reports a figure below its target", () => {
  const [row] = rateRows({
    scenario: "publish",
    ceiling: { name: "echo", rates: [100] },
    servers: new Map([["empty", [69]]]),
    target: 0.7,
    unit: "events",
    detail: undefined,
  });
  expect(row).toMatchObject({ figure: "0.69", met: false });
});
