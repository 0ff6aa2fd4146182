import { expect, it } from "vitest";
import { observationTable } from "./report.ts";
import type { Observation } from "./rig.ts";

const SEEN: Observation = {
  scenario: "publish",
  on: "empty",
  peakMb: 120,
  events: 10_000,
  loopDelayP99Ms: 2,
  loopDelayMaxMs: 10,
  loopCpuMaxMs: 8,
  mainThreadShare: 0.8,
  processShare: 1.2,
  processMs: 1_000,
};

it("divides the processor time of all rounds by all their events, and shows the most of everything else", () => {
  const other = { ...SEEN, events: 30_000, processMs: 5_000, peakMb: 110, mainThreadShare: 0.9 };
  const [, line] = observationTable([SEEN, other]).split("\n");
  expect(line).toMatch(/^publish +empty +120 MB +2\.00 ms +10\.0 ms +8\.00 ms +90 % +120 % +150\.0 ms$/);
});

it("shows no processor time per event where none were counted", () => {
  const [, line] = observationTable([{ ...SEEN, events: undefined }]).split("\n");
  expect(line).toMatch(/120 % +-$/);
});
