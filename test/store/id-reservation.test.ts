import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { hashToken } from "../../src/domain/token.ts";
import { fileTask } from "../../src/store/libsql/files/file-tasks.ts";
import type { Sequences } from "../../src/store/libsql/files/id-reservation.ts";
import type { Store } from "../../src/store/store.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { backupOf, putBackup } from "./backups-of.ts";
import { newAction, openStore } from "./opened-store.ts";
import { useScratch } from "./scratch.ts";

// The promise under test: what is restored gives out no number that may have been given out since the backup.

const scratch = useScratch();
const NOW = Date.parse("2026-03-01T12:00:00.000Z");
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
let folder = "";

beforeEach(() => (folder = join(scratch.path, "data")));

const open = (nowMs = NOW): Promise<Store> => openStore(folder, { clock: new ManualClock(nowMs) });

const put = (bytes: Uint8Array, nowMs: number) => putBackup(folder, bytes, { force: true, nowMs });

/** One more of all that has a number; answers the numbers. */
async function oneOfEach(store: Store, name: string, nowMs: number): Promise<Record<string, number>> {
  const action = await newAction(store, name, nowMs);
  const named = { application: "x", subscription: name, action: name, handler: "h", secret: "s" };
  const record = { ...named, maxRetries: 0, active: true };
  const subscription = await store.catalog.createSubscription(record, nowMs);
  const event = { actionId: action.rowid, revision: 1, payload: Buffer.from("{}") };
  const [recorded] = await store.events.record([event], nowMs);
  const token = await store.tokens.create({ name, hash: hashToken(name), scopes: [] }, nowMs);
  const plan = await store.replays.plan({ subscription: subscription.rowid, selection: "all", fromMs: 0 });
  const replay = await store.replays.start(plan!, nowMs);
  const [delivery] = await store.queue.list({ subscription: subscription.rowid, limit: 1 });
  const records = { action, subscription, token, delivery: delivery!, replay: replay! };
  const numbers = Object.entries(records).map(([noun, { rowid }]) => [noun, rowid] as const);
  return { ...Object.fromEntries(numbers), event: recorded?.kind === "recorded" ? recorded.rowid : 0 };
}

it("no number is used twice, whatever it numbers", async () => {
  const store = await open();
  await oneOfEach(store, "a", NOW);
  const bytes = await backupOf(store);
  const since = await oneOfEach(store, "since", NOW);
  await store.close();
  const { last_event: last, next_event: next } = await put(bytes, NOW);
  expect(last).toBe(since["event"]! - 1);
  const restored = await open();
  const anew = await oneOfEach(restored, "anew", NOW);
  await restored.close();
  expect(anew["event"]).toBe(next);
  for (const [noun, number] of Object.entries(since))
    expect(anew[noun], noun).toBeGreaterThan(number + 1_000);
});

describe("how far numbers skip ahead", () => {
  const MILLION = 1_000_000;
  /** Of a store that has one event. */
  let bytes: Buffer | undefined;
  beforeEach(async () => {
    if (bytes !== undefined) return;
    const store = await open(NOW + DAY_MS);
    await oneOfEach(store, "a", NOW);
    bytes = await backupOf(store);
    await store.close();
  });

  it.each<[string, number, number, Sequences]>([
    ["by ten minutes at once", 0, 600 * MILLION, {}],
    ["by a million for each second since the backup was begun", DAY_MS, (86_400 + 600) * MILLION, {}],
    ["by ten minutes where the clock is behind", -5 * DAY_MS, 600 * MILLION, {}],
    ["by a year at most", 3_000 * DAY_MS, 366 * 86_400 * MILLION, {}],
    ["not beyond those of data that has come less far", 0, 600 * MILLION, { event: 7 }],
    ["beyond those of data that has come further", 0, 2 ** 40, { event: 1 + 2 ** 40 }],
  ])("%s", async (_, laterMs, gap, replaced) => {
    const copy = join(scratch.path, "copy.db");
    writeFileSync(copy, bytes!);
    const { event } = await fileTask("moveNumbers", copy, NOW + DAY_MS + laterMs, replaced);
    expect(event! - 1).toBe(gap);
  });

  it("by the time of the last event in a file that was copied by hand", async () => {
    const store = await open();
    await oneOfEach(store, "a", NOW);
    await store.close();
    const nowMs = NOW + 10 * MINUTE_MS;
    const { event } = await fileTask("moveNumbers", join(folder, "evreg.db"), nowMs);
    expect(event! - 1).toBe(1_200 * MILLION);
  });
});

it("replays and retention work on both sides of the skipped numbers", async () => {
  const laterMs = NOW + 100 * DAY_MS;
  const store = await open();
  await oneOfEach(store, "a", NOW);
  const bytes = await backupOf(store);
  await store.close();
  await put(bytes, laterMs);
  const restored = await open(laterMs);
  const { actionId, revision } = (await restored.catalog.findAction("a"))!;
  const events = Array.from({ length: 1_000 }, () => ({ actionId, revision, payload: Buffer.from("{}") }));
  await restored.events.record(events, laterMs);
  const record = { application: "x", subscription: "late", action: "a", handler: "h", secret: "s" };
  const late = await restored.catalog.createSubscription({ ...record, maxRetries: 0, active: true }, NOW);
  const plan = await restored.replays.plan({ subscription: late.rowid, selection: "missed", fromMs: NOW });
  expect(await restored.replays.count(plan!)).toBe(1_001);
  let calls = 0;
  for (let next: number | undefined; calls === 0 || next !== undefined; calls += 1) {
    ({ next } = await restored.events.removeExpired({ beforeMs: laterMs + DAY_MS }, next));
  }
  expect(calls).toBeLessThan(30);
  await restored.close();
});
