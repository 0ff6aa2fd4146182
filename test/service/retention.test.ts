import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Action } from "../../src/domain/action.ts";
import { EvregError } from "../../src/domain/error.ts";
import { floorTo } from "../../src/domain/stats/stats.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { createRetention } from "../../src/service/retention.ts";
import type { Rounds } from "../../src/service/rounds.ts";
import type { ExpiredRange } from "../../src/store/events.ts";
import type { Store } from "../../src/store/store.ts";
import { endDue, subscribe } from "../contract/harness.ts";
import { type LocalService, openLocalService } from "../support/local-service.ts";
import { KeptLog } from "../support/kept-log.ts";
import type { ManualClock } from "../support/manual-clock.ts";
import { until } from "../support/until.ts";
import { SOLE_NODE } from "../../src/store/thread/store.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;

describe("removing old events", () => {
  let local: LocalService;
  let store: Store;
  let clock: ManualClock;
  let action: Action;
  /** What the loop asks of the real store. */
  let asked: ExpiredRange[];
  /** Thrown by the next calls instead. */
  let failures: Error[];
  let log: KeptLog;
  let retention: Rounds;
  /** What this node of several does, and whether the others have the same setting, now and once a step was made. */
  let hasDuties: boolean;
  let isAlike: boolean;
  let isAlikeAfterStep: boolean;

  function make(): Rounds {
    return createRetention({
      node: { ...SOLE_NODE, hasDuties: () => hasDuties, isAlike: () => Promise.resolve(isAlike) },
      events: {
        removeExpired(range, next) {
          asked.push(range);
          isAlike = isAlikeAfterStep;
          const failure = failures.shift();
          return failure === undefined ? store.events.removeExpired(range, next) : Promise.reject(failure);
        },
      },
      clock,
      logger: log,
      retentionMs: HOUR_MS,
      audit: store.audit,
      stats: store.stats,
      auditMs: 0,
    });
  }

  beforeEach(async () => {
    [asked, failures, log] = [[], [], new KeptLog()];
    [hasDuties, isAlike, isAlikeAfterStep] = [true, true, true];
    local = await openLocalService();
    ({ store, clock } = local);
    action = await store.catalog.createAction({ action: "a.b", application: "x", schemata: {} }, clock.now());
    retention = make();
  });
  afterEach(async () => {
    await retention.stop();
    await local.close();
  });

  async function publish(count: number): Promise<void> {
    const record = { actionId: action.rowid, revision: 1, payload: Buffer.from("{}") };
    await store.events.record(
      Array.from({ length: count }, () => record),
      clock.now(),
    );
  }

  async function left(): Promise<number> {
    return (await store.events.list({ order: "desc", limit: 1, page: 1 })).total;
  }

  /** Lets steps and their rests pass until it waits for the next round. */
  async function roundOver(): Promise<void> {
    await until("the round to be over", async () => {
      const next = clock.nextTimerMs;
      if (next === undefined) return false;
      if (next - clock.now() === 5 * MINUTE_MS) return true;
      await clock.advance(next - clock.now());
      return false;
    });
  }

  async function nextRound(): Promise<void> {
    asked = [];
    await clock.advance(5 * MINUTE_MS);
    await roundOver();
  }

  it("ends within a round once a node has another setting, and goes on when all have the same", async () => {
    await publish(2_500);
    await clock.advance(HOUR_MS + 1);
    isAlikeAfterStep = false;
    retention.start();
    await roundOver();
    expect(asked).toHaveLength(1);
    expect(await left()).toBeGreaterThan(0);
    [isAlike, isAlikeAfterStep] = [true, true];
    await nextRound();
    expect(await left()).toBe(0);
  });

  it("begins soon after a node was given what only one of several does", async () => {
    await publish(1);
    await clock.advance(HOUR_MS + 1);
    hasDuties = false;
    retention.start();
    await until("it to wait", () => clock.pending === 1);
    hasDuties = true;
    await clock.advance(10_000);
    await until("it to begin", () => asked.length > 0);
    await roundOver();
    expect(await left()).toBe(0);
  });

  it("runs at the start, removes what is older than the limit, and logs one line", async () => {
    await publish(2_500);
    await clock.advance(HOUR_MS + 1);
    await publish(3);
    retention.start();
    retention.start();
    await roundOver();
    expect(await left()).toBe(3);
    expect(log.lines).toEqual([
      {
        level: "info",
        fields: { events: 2_500, deliveries: 0 },
        message: "Events older than retention.events were removed.",
      },
    ]);
    // In many small transactions.
    expect(asked.length).toBeGreaterThan(5);

    await nextRound();
    expect(await left()).toBe(3);
    expect(asked).toHaveLength(1);
    for (let round = 0; round < 12; round += 1) await nextRound();
    expect(await left()).toBe(0);
    expect(log.lines.map(({ fields }) => fields)).toEqual([
      { events: 2_500, deliveries: 0 },
      { events: 3, deliveries: 0 },
    ]);
  });

  it("looks once an hour at an event that waits for its delivery", async () => {
    const { subscriptions } = local.evreg;
    const { rowid } = await subscribe(local.evreg, { action: "a.b" });
    await publish(1);
    await subscriptions.update(rowid, { active: false });
    const publishedMs = clock.now();
    await clock.advance(HOUR_MS + 1);
    retention.start();
    await roundOver();
    const startedMs = clock.now();
    expect(await left()).toBe(1);
    await nextRound();
    // From where the last round ended.
    expect(asked).toMatchObject([{ fromMs: expect.any(Number) }]);
    expect(asked[0]).not.toMatchObject({ fromMs: publishedMs });

    await subscriptions.update(rowid, { active: true });
    await endDue(local, "delivered");
    while (clock.now() - startedMs < 54 * MINUTE_MS) await nextRound();
    expect(await left()).toBe(1);
    while (clock.now() - startedMs < 61 * MINUTE_MS) await nextRound();
    expect(await left()).toBe(0);
    expect(log.lines.map(({ fields }) => fields)).toEqual([{ events: 1, deliveries: 1 }]);
  });

  it("pauses after each step, for longer the longer the store took", async () => {
    await publish(500);
    await clock.advance(2 * HOUR_MS);
    const started = clock.now();
    retention.start();
    // The clock stands still, so the shortest.
    await until("the first rest", () => clock.pending === 1);
    expect(clock.nextTimerMs).toBe(started + 5);
    expect(asked).toHaveLength(1);

    const slow = store.events.removeExpired.bind(store);
    store.events.removeExpired = async (range, next) => {
      const answer = await slow(range, next);
      clock.pass(30);
      return answer;
    };
    await clock.advance(5);
    await until("the second rest", () => clock.pending === 1);
    expect(clock.nextTimerMs).toBe(started + 5 + 30 + 120);
  });

  it("goes on in the next round where the store takes no writes, without a line of its own", async () => {
    await publish(1_500);
    await clock.advance(2 * HOUR_MS);
    retention.start();
    await until("the first answer", () => clock.pending === 1);
    failures = [new EvregError("unavailable", "Nothing can be stored: the disk is full.")];
    await roundOver();
    expect(await left()).toBeGreaterThan(0);
    expect(log.lines).toEqual([]);
    await nextRound();
    expect(await left()).toBe(0);
    expect(log.lines.map(({ level }) => level)).toEqual(["info"]);
  });

  it("ends a round that fails in another way, logs it, and starts the next one anew", async () => {
    await publish(5);
    await clock.advance(2 * HOUR_MS);
    failures = [new EvregError("internal", "no idea")];
    retention.start();
    await roundOver();
    expect(log.lines).toMatchObject([
      { level: "error", message: expect.stringContaining("Removing old events") },
    ]);
    await nextRound();
    expect(await left()).toBe(0);
  });

  it("stops after the step in progress, and can be stopped twice", async () => {
    await publish(3_000);
    await clock.advance(2 * HOUR_MS);
    for (const turns of [0, 1, 2, 3, 5, 8, 13, 21]) {
      const loop = make();
      loop.start();
      for (let turn = 0; turn < turns; turn += 1) await clock.advance(5);
      await Promise.all([loop.stop(), loop.stop()]);
      expect(clock.pending).toBe(0);
      const before = [asked.length, await left()];
      await clock.advance(HOUR_MS);
      expect([asked.length, await left()]).toEqual(before);
    }
    retention.start();
    await roundOver();
    expect(await left()).toBe(0);
  });
});

it("kept changes and figures go once they are too old, and no others", async () => {
  const local = await openLocalService();
  const { evreg, store, clock } = local;
  const create = (action: string) => evreg.actions.create({ action, application: "a", schemata: {} });
  const names = async (): Promise<string[]> => (await evreg.audit.list()).data.map(({ name }) => name);
  await create("old");
  await evreg.events.publish({ action: "old", payload: RawJson.fromValue({}) });
  const pieces = [{ spanMs: HOUR_MS, startMs: floorTo(clock.now(), HOUR_MS) }];
  const figures = async (): Promise<number> => (await store.stats.figures({ by: "start", pieces })).length;
  expect(await figures()).toBe(1);
  await clock.advance(89 * DAY_MS);
  await create("new");
  const { events, audit, stats } = store;
  const options = { events, audit, stats, clock, logger: silentLogger, retentionMs: 0 };
  const retention = createRetention({ ...options, node: SOLE_NODE, auditMs: 90 * DAY_MS });
  retention.start();
  await retention.stop();
  expect(await names()).toEqual(["new", "old"]);
  await clock.advance(2 * DAY_MS);
  const later = createRetention({ ...options, node: SOLE_NODE, auditMs: 90 * DAY_MS });
  later.start();
  await expect.poll(names).toEqual(["new"]);
  // Steps have pauses between them.
  await expect.poll(() => clock.advance(1_000).then(figures)).toBe(0);
  await later.stop();
  await local.close();
});
