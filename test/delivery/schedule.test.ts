import { beforeEach, describe, expect, it } from "vitest";
import type { Item, Lane } from "../../src/delivery/lane.ts";
import { Schedule } from "../../src/delivery/schedule.ts";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import type { Subscription } from "../../src/domain/subscription.ts";
import type { Claim } from "../../src/store/queue.ts";
import { resultOf } from "../contract/store/fixture.ts";
import { claimOf } from "../support/claim-request.ts";

let deliveries = 0;
function claims(subscriptionId: number, count: number, payload = new Uint8Array(10)): Claim[] {
  return Array.from({ length: count }, () => claimOf((deliveries += 1), subscriptionId, { payload }));
}

/** A schedule before handlers that answer when the test says so. */
class Bench {
  readonly schedule: Schedule;
  nowMs = 1_000_000;
  readonly sending: Item[] = [];
  /** Subscriptions in the order in which theirs were started. */
  readonly order: number[] = [];
  readonly dropped: number[] = [];
  readonly #claims = new Map<Item, Claim>();
  #last: Item | undefined;

  constructor(maxInFlight: number) {
    this.schedule = new Schedule(maxInFlight, 4);
  }

  /** Leases deliveries, and starts what may be started. */
  lease(...leased: readonly Claim[]): void {
    this.schedule.request(this.nowMs, 60_000);
    this.schedule.claimed({ claims: leased, nextDueAtMs: undefined, limitedTiers: [] }, this.nowMs);
    this.advance();
  }

  advance(): void {
    let step = this.schedule.step(this.nowMs);
    for (; step.do !== "wait"; step = this.schedule.step(this.nowMs)) {
      if (step.do === "start") this.#begin(step.item, step.claim);
      else if (step.do === "drop") this.dropped.push(step.claim.deliveryId);
    }
  }

  end(item: Item): void {
    this.sending.splice(this.sending.indexOf(item), 1);
    const answered = { durationMs: 1, statusCode: 200 };
    this.schedule.ended(item, resultOf(this.#claims.get(item)!, "delivered", answered), this.nowMs);
  }

  endOne(subscriptionId: number): void {
    this.end(this.sending.find(({ lane }) => lane.subscriptionId === subscriptionId)!);
    this.advance();
  }

  /** Makes a subscription a fast one with a limit of 4. */
  makeFast(subscriptionId: number): Lane {
    const { order } = this;
    const before = order.length;
    this.lease(...claims(subscriptionId, 4));
    while (this.sending.length > 0) this.endOne(subscriptionId);
    const { lane } = this.#last!;
    order.length = before;
    deliveries -= 4;
    expect([lane.limit, lane.queued.length]).toEqual([4, 0]);
    return lane;
  }

  #begin(item: Item, claim: Claim): void {
    this.schedule.start(item, this.nowMs);
    this.#claims.set(item, claim);
    this.#last = item;
    this.order.push(item.lane.subscriptionId);
    this.sending.push(item);
  }
}

describe("prefetched deliveries", () => {
  let bench: Bench;
  beforeEach(() => {
    deliveries = 0;
    bench = new Bench(8);
  });

  it("start in rotation where there is not capacity for all, so that a long queue delays nobody", () => {
    for (const id of [1, 2, 3]) bench.makeFast(id);
    bench.lease(...claims(1, 20), ...claims(2, 2), ...claims(3, 2));
    // One fast subscription has no more in flight than are still free.
    expect(bench.order).toEqual([1, 2, 3, 1, 2, 3]);
    bench.endOne(1);
    expect(bench.order.slice(6)).toEqual([1]);
  });

  it("use at most the free memory, and each may have one", () => {
    const payload = new Uint8Array(20 * 1_024 * 1_024);
    const lane = bench.makeFast(1);
    bench.makeFast(2);
    bench.makeFast(3);
    bench.lease(...claims(1, 3, payload));
    expect([lane.sending, lane.queued.length]).toEqual([2, 1]);
    bench.lease(...claims(2, 2, payload), ...claims(3, 2, payload));
    expect(bench.order).toEqual([1, 1, 2, 3]);
    bench.endOne(1);
    expect(bench.order).toHaveLength(4);
    for (const started of bench.sending.slice(1)) bench.end(started);
    bench.advance();
    expect(bench.sending.length).toBeGreaterThanOrEqual(2);
  });

  it("are dropped when others have changed their subscription since they were asked for", () => {
    for (const subscription of [1, 2]) bench.makeFast(subscription);
    const claimed = (change: () => void): void => {
      bench.schedule.request(bench.nowMs, 60_000);
      change();
      const answer = { claims: [...claims(1, 1), ...claims(2, 1)], nextDueAtMs: undefined, limitedTiers: [] };
      bench.schedule.claimed(answer, bench.nowMs);
      bench.advance();
    };
    claimed(() => bench.schedule.changedByOthers([1]));
    expect([bench.dropped.length, bench.order.length]).toEqual([1, 1]);
    claimed(() => undefined);
    expect([bench.dropped.length, bench.order.length]).toEqual([1, 3]);
  });

  it("are dropped instead of started when they have waited too long, as after a sleep of the machine", () => {
    bench.makeFast(1);
    bench.lease(...claims(1, 6));
    bench.nowMs += 60_000;
    bench.endOne(1);
    expect(bench.dropped).toEqual([5, 6]);
    expect(bench.order).toHaveLength(4);
  });

  it("made with their events are dropped when their subscription was changed before they came", () => {
    const lane = bench.makeFast(1);
    const { schedule } = bench;
    bench.lease();
    const [before, other] = [claims(1, 1), claims(1, 1)];
    const claim = schedule.reserve("a", bench.nowMs, 60_000)!;
    expect(claim.subscriptions).toEqual([1]);
    schedule.changed({ ...NO_SETTINGS, rowid: 1 } as unknown as Subscription);
    expect(schedule.reserve("a", bench.nowMs, 60_000)).toBeUndefined();
    // What the next claim brings is as it is by then.
    bench.lease();
    schedule.recorded(claim, before, bench.nowMs);
    bench.advance();
    expect([bench.dropped, lane.leased]).toEqual([[before[0]!.deliveryId], 0]);
    schedule.recorded(schedule.reserve("a", bench.nowMs, 60_000)!, other, bench.nowMs);
    bench.advance();
    expect(lane.sending).toBe(1);
  });
});
