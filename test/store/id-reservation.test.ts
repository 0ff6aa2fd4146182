import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { hashToken } from "../../src/domain/token-secret.ts";
import { fileTask } from "../../src/store/libsql/file-task.ts";
import type { Store } from "../../src/store/store.ts";
import { ManualClock } from "../support/manual-clock.ts";
import {
  backupOf,
  eventOf,
  newAction,
  openStore,
  putBackup,
  subscriptionTo,
  useScratch,
} from "./opened-store.ts";

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
  const subscription = await store.catalog.createSubscription(subscriptionTo(name), nowMs);
  const [recorded] = await store.events.record([eventOf(action.rowid)], nowMs);
  const token = await store.tokens.create({ name, hash: hashToken(name), scopes: [] }, nowMs);
  const request = { subscription: subscription.rowid, selection: "all", fromMs: 0 } as const;
  const replay = await store.replays.start(request, nowMs);
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
  const FIRST = Date.parse("2026-01-01T00:00:00.000Z");
  /** Of a store that has one event. */
  let bytes: Buffer | undefined;
  beforeEach(async () => {
    if (bytes !== undefined) return;
    const store = await open();
    await oneOfEach(store, "a", NOW);
    bytes = await backupOf(store);
    await store.close();
  });

  it.each<[string, number, number]>([
    ["to a million for each second since 2026, and for ten minutes more", NOW, (NOW - FIRST) / 1_000 + 600],
    ["by ten minutes where the clock is far behind", 1, 600],
  ])("%s", async (_, nowMs, seconds) => {
    const copy = join(scratch.path, "copy.db");
    writeFileSync(copy, bytes!);
    const own = nowMs < FIRST ? 1 : 0;
    expect(await fileTask("moveNumbers", copy, nowMs)).toBe(own + seconds * MILLION);
  });

  it("beyond those of data that were restored from the same backup before", async () => {
    const first = await put(bytes!, NOW);
    expect((await put(bytes!, NOW + MINUTE_MS)).next_event).toBe(first.next_event + 60 * MILLION);
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
  const { rowid: actionId } = (await restored.catalog.findAction("a"))!;
  const events = Array.from({ length: 1_000 }, () => eventOf(actionId));
  await restored.events.record(events, laterMs);
  const late = await restored.catalog.createSubscription(subscriptionTo("a", { subscription: "late" }), NOW);
  const request = { subscription: late.rowid, selection: "missed", fromMs: NOW } as const;
  expect(await restored.replays.count(request)).toBe(1_001);
  let calls = 0;
  for (let next: number | undefined; calls === 0 || next !== undefined; calls += 1) {
    ({ next } = await restored.events.removeExpired({ beforeMs: laterMs + DAY_MS }, next));
  }
  expect(calls).toBeLessThan(30);
  await restored.close();
});
