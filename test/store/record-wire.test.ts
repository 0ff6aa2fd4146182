import { describe, expect, test } from "vitest";
import {
  packEvents,
  packOutcomes,
  type RecordCall,
  type StoredOutcome,
  unpackEvents,
  unpackOutcomes,
} from "../../src/store/libsql/events/record-wire.ts";
import type { EventRecord } from "../../src/store/events.ts";

function event(actionId: number, revision: number, bytes: number, key?: string): EventRecord {
  const record = { actionId, revision, payload: new Uint8Array(bytes) };
  return key === undefined ? record : { ...record, idempotencyKey: key };
}

function call(nowMs: number, ...events: EventRecord[]): RecordCall {
  return { nowMs, atomic: nowMs % 2 === 0, events };
}

describe("calls that record events, across the thread", () => {
  test.each<[string, RecordCall[]]>([
    ["one", [call(1_790_000_000_001, event(1, 2, 30))]],
    [
      "some, one without events",
      [call(1, event(1, 1, 9)), call(4), call(2, event(1, 1, 0), event(2, 3, 18))],
    ],
    [
      "keys on some",
      [call(1, event(1, 1, 9)), call(2, event(1, 1, 9), event(2, 3, 0, "k")), call(3, event(1, 1, 1))],
    ],
    ["numbers past 32 bits", [call(2 ** 52, event(2 ** 53 - 1, 1, 3))]],
  ])("%s", (_, calls) => {
    let offset = 7;
    const batches = calls.map(({ nowMs, atomic, events }) => ({
      atomic,
      events: events.map(({ actionId, revision, payload, idempotencyKey = null }) => {
        const length = payload.byteLength;
        offset += length;
        return { actionId, revision, offset: offset - length, length, key: idempotencyKey, nowMs };
      }),
    }));
    expect(unpackEvents(structuredClone(packEvents(calls)), 7)).toEqual(batches);
  });

  test("are these numbers, and the keys beside them", () => {
    const calls = [call(4, event(2 ** 53 - 1, 3, 0)), call(5), call(7, event(1, 2, 9, "k"))];
    const { numbers, keys } = packEvents(calls);
    const [first, second, third] = [
      [4, 1, 1, 0, 0, 2 ** 53 - 1, 3, 0],
      [5, 0, 0, 0, 0],
      [7, 0, 1, 0, 0, 1, 2, 9],
    ];
    expect([...numbers]).toEqual([...first, ...second, ...third]);
    expect(keys).toEqual([null, "k"]);
    const stored = { kind: "recorded", rowid: 2 ** 53 - 1, timestampedMs: 8, deliveries: 3 } as const;
    const outcomes = packOutcomes([[stored], [{ kind: "stale" }]]);
    expect({ ...outcomes, numbers: [...outcomes.numbers] }).toEqual({
      numbers: [0, 2 ** 53 - 1, 8, 3, 3, 0, 0, 0],
      taken: [1, 1],
    });
  });

  test("and what came of them, whatever it is", () => {
    const recorded = { kind: "recorded", rowid: 7, timestampedMs: 1_790_000_000_001, deliveries: 3 } as const;
    const every: StoredOutcome[] = [
      recorded,
      { kind: "replayed", rowid: 1, timestampedMs: 5, revision: 2 },
      { kind: "key_conflict", rowid: 2 ** 53 - 1 },
      { kind: "stale" },
      { kind: "withheld" },
    ];
    const leases = { claimId: 9, subscriptions: "[]", deliveries: [[2 ** 53 - 1, 4] as const] };
    const outcomes = [every, [], [{ ...recorded, leases }]];
    expect(unpackOutcomes(structuredClone(packOutcomes(outcomes)))).toEqual(outcomes);
  });

  test("and what a call claims with its events", () => {
    const claim = { action: "a.b", subscriptions: [7, 2 ** 53 - 1], leaseMs: 60_000, changes: 0 };
    const calls = [{ ...call(1, event(1, 1, 2)), claim }, call(2, event(1, 1, 3))];
    const [first, second] = unpackEvents(structuredClone(packEvents(calls)), 0);
    expect(first).toMatchObject({ claim: { subscriptions: [7, 2 ** 53 - 1], leaseMs: 60_000 } });
    expect(second).toMatchObject({ events: [{ offset: 2, length: 3 }] });
    expect(second).not.toHaveProperty("claim");
  });
});
