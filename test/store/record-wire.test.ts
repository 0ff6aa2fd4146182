import { describe, expect, test } from "vitest";
import type { RecordOutcome } from "../../src/store/events.ts";
import {
  packOps,
  packOutcomes,
  unpackOps,
  unpackOutcomes,
  type WireOp,
  type WireOutcome,
} from "../../src/store/libsql/thread/protocol.ts";

const other: WireOp = { name: "createAction", args: ["a"] };

function record(nowMs: number, rows: number[], keys?: (string | null)[]): WireOp {
  const call = { nowMs, atomic: nowMs % 2 === 0, rows };
  return { name: "recordEvents", call: keys === undefined ? call : { ...call, keys } };
}

/** As the other side has them; rows as plain lists. */
function carried(ops: readonly WireOp[]): readonly WireOp[] {
  return unpackOps(structuredClone(packOps(ops))).map((op) => {
    if ("args" in op || op.name !== "recordEvents") return op;
    const { nowMs, rows, keys } = op.call;
    return record(nowMs, Array.from(rows), keys as (string | null)[] | undefined);
  });
}

describe("calls that record events, across the thread", () => {
  test.each<[string, WireOp[]]>([
    ["none", [other]],
    ["one", [record(1_790_000_000_001, [1, 2, 0, 30])]],
    [
      "some, and other writes between them",
      [record(1, [1, 1, 0, 9]), other, record(2, [1, 1, 9, 9, 2, 3, 18, 0])],
    ],
    [
      "keys on some",
      [record(1, [1, 1, 0, 9]), record(2, [1, 1, 9, 9, 2, 3, 18, 1], [null, "k"]), record(3, [1, 1, 0, 0])],
    ],
    ["numbers past 32 bits", [record(2 ** 52, [2 ** 40, 1, 2 ** 33, 2 ** 31])]],
  ])("%s", (_, ops) => {
    expect(carried(ops)).toEqual(ops);
  });

  const recorded: RecordOutcome = {
    kind: "recorded",
    rowid: 7,
    timestampedMs: 1_790_000_000_001,
    deliveries: 3,
  };
  const refusal: WireOutcome = { error: { code: "internal", message: "m", details: {} } };
  const every: RecordOutcome[] = [
    recorded,
    { kind: "replayed", rowid: 1, timestampedMs: 5, revision: 2 },
    { kind: "key_conflict", rowid: 2 ** 41 },
    { kind: "stale" },
    { kind: "withheld" },
    { kind: "deferred" },
  ];

  test("and what came of them, whatever it is", () => {
    const ops = [record(1, []), other, record(2, []), record(3, [])];
    const outcomes = [{ ok: every }, { ok: "other" }, refusal, { ok: [recorded] }];
    expect(unpackOutcomes(structuredClone(packOutcomes(ops, outcomes)))).toEqual(outcomes);
  });

  test("and of none", () => {
    expect(unpackOutcomes(structuredClone(packOutcomes([other], [{ ok: 1 }])))).toEqual([{ ok: 1 }]);
  });
});
