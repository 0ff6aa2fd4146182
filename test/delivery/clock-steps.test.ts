import { beforeEach, describe, expect, it } from "vitest";
import type { PulledDelivery } from "../../src/domain/pull.ts";
import type { Subscription } from "../../src/domain/subscription.ts";
import { resultOf } from "../contract/store/fixture.ts";
import { claimRequest } from "../support/claim-request.ts";
import type { Receiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { type Bench, portWith, useBench } from "./engine-setup.ts";

let bench: Bench;
let receiver: Receiver;
useBench((opened) => ({ bench, receiver } = opened));

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

function setBack(byMs: number): void {
  bench.clock.set(bench.clock.now() - byMs);
}

/** The answers of the store, and what follows from them. */
async function settle(): Promise<void> {
  await bench.advance(0);
  for (let answer = 0; answer < 3; answer += 1) await bench.store.catalog.findAction("none");
}

function movedLines() {
  return bench.log.with("what waits was moved with it").map(({ fields }) => fields);
}

describe("a retry that is due in ten seconds", () => {
  let subscription: Subscription;
  beforeEach(async () => {
    receiver.script({ status: 500 });
    subscription = await bench.subscribe(receiver.url, 5, { retry_schedule: [10_000, 10_000] });
    await bench.publish(subscription);
    bench.engine().start();
    await bench.untilStatus(subscription, "waiting");
    await until("the engine to plan the retry", () => bench.clock.pending === 2);
  });

  it("comes after ten seconds, the clock being set back a day meanwhile", async () => {
    await bench.advance(4_000);
    setBack(DAY_MS);
    await bench.advance(5_900);
    expect(receiver.requests).toHaveLength(1);
    await bench.advance(1_100);
    await bench.untilStatus(subscription, "delivered");
    expect(movedLines()).toEqual([{ backMs: DAY_MS, waits: 1 }]);
  });

  it("comes after ten seconds at most, the clock being set back an hour and the server restarted meanwhile", async () => {
    await bench.advance(4_000);
    await bench.restart(() => setBack(HOUR_MS));
    const [moved] = movedLines();
    // All that the file knows is when the attempt failed.
    expect(moved).toMatchObject({ waits: 1, backMs: HOUR_MS - 4_000 });
    bench.engine().start();
    await bench.advance(9_000);
    expect(receiver.requests).toHaveLength(1);
    await bench.advance(2_000);
    await bench.untilStatus(subscription, "delivered");
  });

  it("is moved once, however often the server is restarted", async () => {
    await bench.restart(() => setBack(HOUR_MS));
    const waiting = await bench.delivery(subscription);
    await bench.restart(() => {});
    await bench.restart(() => {});
    expect((await bench.delivery(subscription)).next_attempt_at).toBe(waiting.next_attempt_at);
    expect(movedLines()).toHaveLength(1);
  });

  it("comes at once where the clock is set forward, and nothing is moved", async () => {
    bench.clock.set(bench.clock.now() + HOUR_MS);
    await bench.advance(60_000);
    await bench.untilStatus(subscription, "delivered");
    expect(movedLines()).toEqual([]);
  });

  it("is moved once the store takes it, where that failed at first", async () => {
    await bench.restart(() => {});
    let failures = 2;
    const store = portWith(bench.store.queue, {
      moveWaits: (backMs, nowMs) => {
        failures -= 1;
        if (failures >= 0) return Promise.reject(new Error("no disk"));
        return bench.store.queue.moveWaits(backMs, nowMs);
      },
    });
    bench.engine({}, { store }).start();
    await settle();
    setBack(HOUR_MS);
    await bench.advance(14_000, 500);
    await bench.untilStatus(subscription, "delivered");
    expect(bench.log.with("Waits cannot be moved")).toHaveLength(1);
    expect(movedLines()).toEqual([{ backMs: HOUR_MS, waits: 1 }]);
  });
});

describe("what is stored around the step", () => {
  it("waits by the clock by which it was stored", async () => {
    const subscription = await bench.withEvents(2, receiver.url);
    const oldMs = bench.clock.now();
    const nowMs = oldMs - HOUR_MS;
    const { queue } = bench.store;
    const { claims } = await queue.claim(claimRequest({ nowMs: oldMs, leaseMs: 30_000 }));
    const [before, after] = claims.map((claim) => resultOf(claim, "failed", { startedAtMs: oldMs }));
    // All in one turn, so that nothing but their order tells them apart.
    const [, waits] = await Promise.all([
      queue.finish([{ ...before!, retryAfterMs: 10_000 }], oldMs),
      queue.moveWaits(HOUR_MS, nowMs),
      queue.finish([{ ...after!, retryAfterMs: 20_000 }], nowMs),
    ]);
    // Both deliveries, and the lease of the second.
    expect(waits).toBe(3);
    const listed = await queue.list({ subscription: subscription.rowid, limit: 10 });
    const inMs = listed.map(({ next_attempt_at: at }) => Date.parse(at!) - nowMs);
    expect(inMs.toSorted((one, other) => one - other)).toEqual([10_000, 20_000]);
    expect(await queue.moveWaits(HOUR_MS, nowMs)).toBe(0);
  });
});

describe("consumers of a pull subscription", () => {
  let subscription: Subscription;
  beforeEach(async () => {
    subscription = await bench.subscribe(null, 5, { retry_schedule: [3_000] });
  });

  async function startEngine() {
    const engine = bench.started();
    const claim = (wait_ms: number): Promise<readonly PulledDelivery[]> =>
      engine.pulls.claim({
        subscription: subscription.rowid,
        max: 1,
        wait_ms,
        lease_ms: 2_000,
        consumer: "one",
        caller: "one",
      });
    return { engine, claim };
  }

  it("get an event at once, and wait no longer than they asked, the clock being set back 30 s meanwhile", async () => {
    const { engine, claim } = await startEngine();
    const served = claim(5_000);
    await settle();
    setBack(30_000);
    await bench.advance(2_000);
    await bench.publish(subscription);
    engine.wake();
    expect(await served).toHaveLength(1);

    let isOver = false;
    const empty = claim(5_000).then((taken) => {
      isOver = true;
      return taken.length;
    });
    await settle();
    setBack(30_000);
    // The first lease ends meanwhile, and its delivery is taken by the one who waits.
    await bench.advance(4_900, 100);
    expect(isOver).toBe(true);
    expect(await empty).toBe(1);
    const last = claim(5_000);
    await settle();
    setBack(30_000);
    await bench.advance(5_000, 100);
    expect(await last).toHaveLength(1);
  });

  it.each([["running"], ["over a restart"]])(
    "get what the last one let run out, and what failed, with the clock set back a day (%s)",
    async (how) => {
      let { engine, claim } = await startEngine();
      await bench.publish(subscription, 2);
      const [failing] = await claim(0);
      const [left] = await claim(0);
      await engine.pulls.finish(subscription, [{ lease: failing!.lease, outcome: "failed", reason: "no" }]);
      await engine.pulls.finish(subscription, [{ lease: left!.lease, outcome: "extended", lease_ms: 2_000 }]);
      if (how === "running") setBack(DAY_MS);
      else {
        await bench.restart(() => setBack(DAY_MS));
        ({ engine, claim } = await startEngine());
      }
      await settle();
      expect(await claim(0)).toEqual([]);
      const taken: number[] = [];
      // A restarted server looks for leases that have ended a few times a minute.
      for (let second = 0; second < 30 && taken.length < 2; second += 1) {
        await bench.advance(1_000);
        for (const { delivery_id, lease } of await claim(0)) {
          taken.push(delivery_id);
          await engine.pulls.finish(subscription, [{ lease, outcome: "delivered" }]);
        }
      }
      expect(taken.toSorted((one, other) => one - other)).toEqual(
        [failing!.delivery_id, left!.delivery_id].toSorted((one, other) => one - other),
      );
    },
  );
});
