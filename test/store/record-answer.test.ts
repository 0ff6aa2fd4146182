import { describe, expect, test } from "vitest";
import { packOutcomes, unpackOutcomes } from "../../src/store/libsql/record-answer.ts";
import type { RecordOutcome } from "../../src/store/store.ts";

function recorded(rowid: number, timestampedMs = 5, deliveries = 0): RecordOutcome {
  return { kind: "recorded", rowid, timestampedMs, deliveries };
}

describe("the answer to a call, across the thread", () => {
  test.each<[string, RecordOutcome[]]>([
    ["nothing", []],
    ["one", [recorded(7)]],
    ["a row of them", [recorded(7), recorded(8, 5, 3), recorded(9)]],
    ["a gap between them", [recorded(7), recorded(9)]],
    ["another time", [recorded(7), recorded(8, 6)]],
    ["one that is stale", [recorded(7), { kind: "stale" }, recorded(8)]],
    ["the end deferred", [recorded(7), { kind: "deferred" }]],
    ["an earlier event first", [{ kind: "replayed", rowid: 1, timestampedMs: 5, revision: 1 }, recorded(2)]],
    ["a conflict", [{ kind: "key_conflict", rowid: 1 }]],
    ["none", [{ kind: "withheld" }, { kind: "withheld" }]],
  ])("%s", (_, outcomes) => {
    expect(unpackOutcomes(structuredClone(packOutcomes(outcomes)))).toEqual(outcomes);
  });

  test("has no object for each event when all were recorded", () => {
    const many = Array.from({ length: 500 }, (_, index) => recorded(index + 1));
    const packed = packOutcomes(many);
    expect(packed).toEqual({ firstRowid: 1, timestampedMs: 5, deliveries: many.map(() => 0) });
  });
});
