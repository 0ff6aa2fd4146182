import { expect, test } from "vitest";
import { ErrorSummary } from "../../src/cli/publish/bulk-report.ts";

test("after a thousand reasons each further one is printed, and none is dropped", () => {
  const tally = new ErrorSummary();
  const add = (line: number, error: string) => tally.add(line, { error, details: {} });
  for (let line = 1; line <= 1_000; line += 1) add(line, `reason ${line}`);
  for (let line = 1_001; line <= 1_020; line += 1) expect(add(line, "one too many")).toBe(true);
  for (let line = 1_021; line <= 1_030; line += 1) add(line, "reason 7");
  expect(tally.remaining(undefined)[0]).toBe("6 more lines, up to line 1030: reason 7");
});
