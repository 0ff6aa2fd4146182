import { expect, test } from "vitest";
import type { DeliveryResult } from "../../src/domain/stream.ts";
import { type FeedChange, ChangeRing } from "../../src/service/stream/ring.ts";

const RESULT: DeliveryResult = {
  rowid: 1,
  event_id: 1,
  subscription_id: 1,
  application: "a",
  subscription: "s",
  action: "a.b",
  status: "delivered",
  attempt: 1,
  status_code: 200,
  error_code: null,
  duration_ms: 1,
  timestamped: "2026-01-01T00:00:00.000Z",
};

function result(rowid: number): FeedChange {
  return { topic: "deliveries", data: { ...RESULT, rowid } };
}

function rowids(ring: ChangeRing, after: number, through = ring.last): readonly number[] {
  return ring.between(after, through).map(({ data }) => ("rowid" in data ? data.rowid : 0));
}

test("large records leave room for few, and for one at least", () => {
  const ring = new ChangeRing(0, { changes: 100, changeBytes: 10_000 });
  const schemata = { description: "x".repeat(2_000) };
  const large = {
    topic: "actions",
    data: { change: "changed", record: { schemata } },
  } as unknown as FeedChange;
  for (let count = 0; count < 10; count += 1) ring.add(large, count);
  expect(ring.between(0, ring.last)).toHaveLength(2);
  const huge = { topic: "actions", data: { record: { text: "x".repeat(20_000) } } } as unknown as FeedChange;
  ring.add(huge, 11);
  expect(ring.between(0, ring.last)).toHaveLength(1);
  ring.add(result(1), 12);
  expect(rowids(ring, 0)).toEqual([1]);
});
