import { beforeEach, describe, expect, it } from "vitest";
import { type NextClaim, Scheduler } from "../../src/delivery/scheduler.ts";
import type { SubscriptionState } from "../../src/delivery/subscription-state.ts";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import type { Subscription } from "../../src/domain/subscription.ts";
import type { AttemptResult, Claim } from "../../src/store/queue.ts";

let deliveries = 0;
function claims(subscriptionId: number, count: number, payload = new Uint8Array(10)): Claim[] {
  return Array.from({ length: count }, () => ({
    deliveryId: (deliveries += 1),
    claimId: 1,
    attempt: 1,
    failures: 0,
    event: { eventId: 1, action: "a", payload, timestampedMs: 0 },
    subscription: {
      subscriptionId,
      application: "a",
      name: "s",
      handler: "https://a.example/",
      secret: "s",
      maxRetries: 5,
      settings: NO_SETTINGS,
    },
  }));
}

interface Started {
  readonly sub: SubscriptionState;
  readonly claim: Claim;
  readonly bytes: number;
}

/** A scheduler before handlers that answer when the test says so. */
class Bench {
  readonly scheduler: Scheduler;
  nowMs = 1_000_000;
  readonly inFlight: Started[] = [];
  /** Subscriptions in the order in which theirs were started. */
  readonly order: number[] = [];
  readonly released: number[] = [];
  /** Deliveries that a filter excludes, and the subscriptions in the order in which theirs were excluded. */
  readonly unwanted = new Set<number>();
  readonly excluded: number[] = [];
  /** Subscriptions whose filter is not ready. */
  readonly unready = new Set<number>();
  endsAtOnce = false;

  constructor(maxInFlight: number) {
    this.scheduler = new Scheduler(maxInFlight, 4);
  }

  /** Leases deliveries, and starts what may be started. */
  lease(...leased: readonly Claim[]): void {
    this.scheduler.claims.request(this.nowMs, 60_000);
    this.scheduler.leased({ claims: leased, nextDueAtMs: undefined, limitedTiers: [] }, this.nowMs);
    this.advance();
  }

  advance(maxSteps = Infinity): void {
    for (let step = 0; step < maxSteps; step += 1) {
      const next = this.scheduler.next(this.nowMs);
      if (next === undefined) break;
      this.#move(next);
    }
    this.released.push(...this.scheduler.takeReleased().map(({ deliveryId }) => deliveryId));
  }

  /** Time passes, as the engine's alarm lets it. */
  pass(byMs: number): void {
    const untilMs = this.nowMs + byMs;
    for (;;) {
      const atMs = this.scheduler.nextChangeAtMs(this.nowMs);
      if (atMs > untilMs) break;
      this.nowMs = Math.max(this.nowMs, atMs);
      this.scheduler.claims.isWanted(this.nowMs);
      this.advance();
    }
    this.nowMs = untilMs;
  }

  end(started: Started): void {
    this.inFlight.splice(this.inFlight.indexOf(started), 1);
    const { sub, bytes, claim } = started;
    this.scheduler.ended(sub, bytes, resultOf(claim, this.nowMs), undefined, this.nowMs);
  }

  endOne(subscriptionId: number): void {
    this.end(this.inFlight.find(({ sub }) => sub.subscriptionId === subscriptionId)!);
    this.advance();
  }

  /** Makes a subscription a fast one with a limit of 4. */
  makeFast(subscriptionId: number): SubscriptionState {
    const { order } = this;
    const before = order.length;
    this.lease(...claims(subscriptionId, 4));
    while (this.inFlight.length > 0) this.endOne(subscriptionId);
    const { sub } = this.#last!;
    order.length = before;
    deliveries -= 4;
    expect([sub.limit, sub.buffered]).toEqual([4, 0]);
    return sub;
  }

  #last: Started | undefined;

  #move(next: NextClaim): void {
    const { claim, sub } = next;
    if (this.unready.has(sub.subscriptionId)) return this.scheduler.awaitFilter(next);
    if (this.unwanted.has(claim.deliveryId)) {
      this.excluded.push(sub.subscriptionId);
      return this.scheduler.exclude(next);
    }
    const started = { sub, claim, bytes: this.scheduler.start(next, this.nowMs) };
    this.#last = started;
    this.order.push(sub.subscriptionId);
    this.inFlight.push(started);
    if (this.endsAtOnce) this.end(started);
  }
}

function resultOf({ deliveryId, claimId }: Claim, nowMs: number): AttemptResult {
  return {
    deliveryId,
    claimId,
    startedAtMs: nowMs,
    durationMs: 1,
    statusCode: 200,
    ending: "delivered",
  };
}

describe("prefetched deliveries", () => {
  let bench: Bench;
  beforeEach(() => {
    deliveries = 0;
    bench = new Bench(8);
  });

  it("are started as their subscription's limit allows", () => {
    const sub = bench.makeFast(1);
    bench.lease(...claims(1, 6));
    expect([sub.inFlight, sub.buffered, bench.scheduler.buffered]).toEqual([4, 2, 2]);
    expect(bench.scheduler.bufferedBytes).toBe(20);
    bench.endOne(1);
    expect([sub.inFlight, sub.buffered]).toEqual([4, 1]);
    bench.endOne(1);
    bench.endOne(1);
    expect([sub.inFlight, bench.scheduler.buffered, bench.scheduler.bufferedBytes]).toEqual([3, 0, 0]);
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
    const sub = bench.makeFast(1);
    bench.makeFast(2);
    bench.makeFast(3);
    bench.lease(...claims(1, 3, payload));
    expect([sub.inFlight, sub.buffered]).toEqual([2, 1]);
    bench.lease(...claims(2, 2, payload), ...claims(3, 2, payload));
    expect(bench.order).toEqual([1, 1, 2, 3]);
    bench.endOne(1);
    expect(bench.order).toHaveLength(4);
    for (const started of bench.inFlight.slice(1)) bench.end(started);
    bench.advance();
    expect(bench.inFlight.length).toBeGreaterThanOrEqual(2);
  });

  it("stay queued while other work runs", () => {
    bench.makeFast(1);
    bench.scheduler.claims.request(bench.nowMs, 60_000);
    bench.scheduler.leased({ claims: claims(1, 6), nextDueAtMs: undefined, limitedTiers: [] }, bench.nowMs);
    bench.advance(2);
    expect(bench.order).toHaveLength(2);
    bench.advance();
    expect(bench.order).toHaveLength(4);
  });

  it("may end as they start, by the hundred", () => {
    bench.endsAtOnce = true;
    bench.lease(...claims(1, 500));
    expect([bench.order.length, bench.scheduler.buffered, bench.inFlight.length]).toEqual([500, 0, 0]);
  });

  it("end without an attempt where a filter excludes them, a limited number in a turn", () => {
    const [one, two] = [bench.makeFast(1), bench.makeFast(2)];
    const ofOne = claims(1, 200);
    for (const { deliveryId } of ofOne.slice(0, 199)) bench.unwanted.add(deliveryId);
    bench.lease(...ofOne, ...claims(2, 1));
    expect(bench.excluded).toHaveLength(199);
    // The other one's came after the first turn.
    expect(bench.order).toEqual([2, 1]);
    expect([one.inFlight, one.buffered, two.inFlight, bench.scheduler.buffered]).toEqual([1, 0, 1, 0]);
    expect(bench.scheduler.bufferedBytes).toBe(0);
  });

  it("wait for their filter to be ready, and delay nobody else", () => {
    const [one] = [1, 2].map((id) => bench.makeFast(id));
    const ofOne = claims(1, 3);
    bench.unwanted.add(ofOne[0]!.deliveryId);
    bench.unready.add(1);
    bench.lease(...ofOne, ...claims(2, 2));
    expect([bench.order, bench.excluded, one!.readiness(bench.nowMs)]).toEqual([[2, 2], [], "blocked"]);
    // Neither what comes nor what ends meanwhile starts one.
    bench.lease(...claims(1, 1));
    bench.endOne(2);
    expect(bench.order).toEqual([2, 2]);
    bench.unready.clear();
    bench.scheduler.filterReady(one!);
    bench.advance();
    expect([bench.order, bench.excluded]).toEqual([[2, 2, 1, 1, 1], [1]]);
  });

  it("are released when their filter takes too long to be ready", () => {
    const sub = bench.makeFast(1);
    bench.unready.add(1);
    bench.lease(...claims(1, 2));
    bench.pass(2_000);
    expect([bench.released, sub.buffered, bench.order]).toEqual([[1, 2], 0, []]);
  });

  it("are released when one passes the filter before them whose handler is not known to be fast", () => {
    const ofOne = claims(1, 10);
    for (const { deliveryId } of ofOne.slice(0, 6)) bench.unwanted.add(deliveryId);
    bench.lease(...ofOne);
    const { sub } = bench.inFlight[0]!;
    expect([bench.excluded.length, sub.inFlight, sub.buffered]).toEqual([6, 1, 0]);
    expect(bench.released).toEqual([8, 9, 10]);
    expect(sub.hasBacklog).toBe(true);
  });

  it("are released when their handler has stalled", () => {
    const sub = bench.makeFast(1);
    bench.lease(...claims(1, 6));
    bench.pass(1_000);
    expect(bench.released).toEqual([]);
    bench.pass(1_000);
    expect(bench.released).toEqual([5, 6]);
    expect([sub.buffered, sub.hasBacklog, bench.scheduler.buffered]).toEqual([0, true, 0]);
    bench.pass(1_000);
    expect(bench.scheduler.nextChangeAtMs(bench.nowMs)).toBe(Infinity);
  });

  it("are released instead of started when they have waited too long, as after a sleep of the machine", () => {
    bench.makeFast(1);
    bench.lease(...claims(1, 6));
    bench.nowMs += 60_000;
    bench.endOne(1);
    expect(bench.released).toEqual([5, 6]);
    expect(bench.order).toHaveLength(4);
  });

  it("of one subscription are released when it is deactivated", () => {
    const [one, two] = [bench.makeFast(1), bench.makeFast(2)];
    bench.lease(...claims(1, 6), ...claims(2, 6));
    bench.end(bench.inFlight[0]!);
    const gone = resultOf(claims(1, 1)[0]!, bench.nowMs);
    const deactivated = { subscriptionId: 1, reason: "gone" };
    bench.scheduler.stored(gone, { kind: "stored", state: "failed", deactivated });
    bench.advance();
    expect([one.buffered, two.buffered]).toEqual([0, 3]);
    expect(bench.released).toEqual([4, 5, 6]);
  });

  it("are all released at the end, with later claims", () => {
    bench.makeFast(1);
    bench.lease(...claims(1, 6));
    bench.scheduler.close();
    bench.advance();
    expect(bench.released).toEqual([5, 6]);
    bench.lease(...claims(2, 1));
    expect(bench.released).toEqual([5, 6, 7]);
    while (bench.inFlight[0] !== undefined) bench.end(bench.inFlight[0]);
    bench.advance();
    expect(bench.order).toHaveLength(4);
    expect(bench.scheduler.nextChangeAtMs(bench.nowMs)).toBe(Infinity);
  });

  it("made with their events are released when their subscription was changed before they came", () => {
    const sub = bench.makeFast(1);
    const { scheduler } = bench;
    bench.lease();
    const [before, other] = [claims(1, 1), claims(1, 1)];
    const claim = scheduler.reserve("a", bench.nowMs, 60_000)!;
    expect(claim.subscriptions).toEqual([1]);
    scheduler.changed({ ...NO_SETTINGS, rowid: 1 } as unknown as Subscription);
    expect(scheduler.reserve("a", bench.nowMs, 60_000)).toBeUndefined();
    // What the next claim brings is as it is by then.
    bench.lease();
    scheduler.recorded(claim, before, bench.nowMs);
    bench.advance();
    expect([bench.released, sub.leased]).toEqual([[before[0]!.deliveryId], 0]);
    scheduler.recorded(scheduler.reserve("a", bench.nowMs, 60_000)!, other, bench.nowMs);
    bench.advance();
    expect(sub.inFlight).toBe(1);
  });
});
