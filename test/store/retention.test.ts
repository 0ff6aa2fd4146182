import { statSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import type { Store } from "../../src/store/store.ts";
import { newAction, openStore } from "./opened-store.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();

async function record(store: Store, actionId: number, count: number, bytes: number): Promise<void> {
  const event = { actionId, revision: 1, payload: Buffer.alloc(bytes, "x") };
  const batch = Array.from({ length: count }, () => event);
  await store.events.record(batch, 1);
}

/** Answers how many events each call removed. */
async function removeAll(store: Store): Promise<readonly number[]> {
  const calls: number[] = [];
  for (let next: number | undefined; calls.length === 0 || next !== undefined;) {
    const removed = await store.events.removeExpired({ beforeMs: 2 }, next);
    calls.push(removed.events);
    ({ next } = removed);
  }
  return calls;
}

it("freed space is used again, so the file does not grow", async () => {
  const sizes: number[] = [];
  for (let round = 0; round < 3; round += 1) {
    const store = await openStore(scratch.path);
    const { rowid } = (await store.catalog.findAction("a.b")) ?? (await newAction(store));
    await removeAll(store);
    expect((await store.events.list({ order: "asc", limit: 1, page: 1 })).total).toBe(0);
    for (let batch = 0; batch < 4; batch += 1) await record(store, rowid, 500, 900);
    await store.close();
    sizes.push(statSync(join(scratch.path, "evreg.db")).size);
  }
  // Larger numbers take a byte more here and there.
  expect(Math.max(...sizes)).toBeLessThanOrEqual(sizes[0]! * 1.02);
});

it("events are removed in short transactions, however large the payloads are", async () => {
  const store = await openStore(scratch.path);
  const { rowid } = await newAction(store);
  await record(store, rowid, 7, 1_000_000);
  expect(await removeAll(store)).toEqual([2, 2, 2, 1]);
  await store.close();
});
