import { beforeEach, describe, expect, it } from "vitest";
import { LocalQueue } from "../../src/delivery/scheduler.ts";
import { type Flow, Flows } from "../../src/delivery/subscription-state.ts";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import type { Claim } from "../../src/store/queue.ts";
import { ManualClock } from "../support/manual-clock.ts";

/** A queue before handlers that answer when told. */
class Sending {
  readonly clock = new ManualClock();
  readonly flows = new Flows(4);
  readonly begun: Flow[] = [];
  readonly handedBack: number[] = [];
  /** Subscriptions in the order in which theirs were begun. */
  readonly order: number[] = [];
  /** Deliveries that a filter does not let pass, and the subscriptions in the order in which theirs were kept back. */
  readonly unwanted = new Set<number>();
  readonly keptBack: number[] = [];
  /** Subscriptions whose filter is not ready, with what tells that it is. */
  readonly unready = new Map<number, Promise<void>>();
  readonly queue: LocalQueue;
  endsAtOnce = false;
  /** Attempts that may be begun before the thread is left to others. */
  stepsLeft = Infinity;
  #goOn: (() => void) | undefined;

  constructor(most: number) {
    this.queue = new LocalQueue({
      clock: this.clock,
      flows: this.flows,
      most,
      inFlight: this.#inFlight(),
      prepare: ({ subscription }) => this.unready.get(subscription.subscriptionId),
      keepsBack: (flow, { deliveryId }) => {
        if (!this.unwanted.has(deliveryId)) return false;
        flow.keptBack();
        this.keptBack.push(flow.subscriptionId);
        return true;
      },
      begin: (flow, { event }) => {
        flow.began(this.clock.now(), event.payload?.byteLength ?? 0);
        this.begun.push(flow);
        this.order.push(flow.subscriptionId);
        if (this.endsAtOnce) this.end(flow);
      },
      handBack: (claims) => this.handedBack.push(...claims.map(({ deliveryId }) => deliveryId)),
      yielder: {
        shouldYield: () => (this.stepsLeft -= 1) < 0,
        yield: () =>
          new Promise((resolve) => {
            this.#goOn = resolve;
          }),
      },
    });
  }

  #inFlight(): { size: number; bytes: number } {
    const { begun } = this;
    return {
      get size() {
        return begun.length;
      },
      get bytes() {
        return [...new Set(begun)].reduce((sum, flow) => sum + flow.bytesUnderWay, 0);
      },
    };
  }

  /** The thread comes back to it, for so many more. */
  async goOn(steps: number): Promise<void> {
    this.stepsLeft = steps;
    this.#goOn?.();
    await this.queue.pause;
  }

  end(flow: Flow): void {
    this.begun.splice(this.begun.indexOf(flow), 1);
    flow.bytesUnderWay -= flow.bytesUnderWay / flow.underWay;
    flow.answered(this.clock.now(), 1, false);
    this.queue.ended(flow);
  }

  /** Makes a subscription one with a window of 4. */
  makeQuick(subscriptionId: number): Flow {
    const flow = this.flows.of(subscriptionId);
    for (let count = 0; count < 4; count += 1) {
      flow.began(this.clock.now());
      flow.answered(this.clock.now(), 1, false);
    }
    return flow;
  }
}

let deliveries = 0;
function leased(subscriptionId: number, count: number, payload = new Uint8Array(10)): Claim[] {
  return Array.from({ length: count }, () => ({
    deliveryId: (deliveries += 1),
    claimId: 1,
    attempt: 1,
    failures: 0,
    event: { eventId: 1, action: "a", payload, timestampedMs: 0 },
    subscription: {
      subscriptionId,
      handler: "https://a.example/",
      secret: "s",
      maxRetries: 5,
      settings: NO_SETTINGS,
    },
  }));
}

describe("deliveries that are leased and not begun", () => {
  let sending: Sending;
  beforeEach(() => {
    deliveries = 0;
    sending = new Sending(8);
  });

  it("are begun as their window opens", () => {
    const flow = sending.makeQuick(1);
    sending.queue.add(leased(1, 6));
    expect([flow.underWay, flow.waiting, sending.queue.size]).toEqual([4, 2, 2]);
    expect(sending.queue.payloadBytes).toBe(20);
    sending.end(flow);
    expect([flow.underWay, flow.waiting]).toEqual([4, 1]);
    sending.end(flow);
    sending.end(flow);
    expect([flow.underWay, sending.queue.size, sending.queue.payloadBytes]).toEqual([3, 0, 0]);
  });

  it("take turns where there is not room for all, so that a long row delays nobody", () => {
    for (const id of [1, 2, 3]) sending.makeQuick(id);
    sending.queue.add([...leased(1, 20), ...leased(2, 2), ...leased(3, 2)]);
    // One quick subscription has no more under way than are still free.
    expect(sending.order).toEqual([1, 2, 3, 1, 2, 3]);
    sending.end(sending.begun[0]!);
    expect(sending.order.slice(6)).toEqual([1]);
  });

  it("take no more memory of those under way than is still free, and each may have one", () => {
    const payload = new Uint8Array(20 * 1_024 * 1_024);
    const flow = sending.makeQuick(1);
    sending.queue.add(leased(1, 4, payload));
    expect([flow.underWay, flow.waiting]).toEqual([2, 2]);
    sending.makeQuick(2);
    sending.makeQuick(3);
    sending.queue.add([...leased(2, 2, payload), ...leased(3, 2, payload)]);
    expect(sending.order).toEqual([1, 1, 2, 3]);
    sending.end(flow);
    expect(sending.order).toHaveLength(4);
    for (const other of sending.begun.slice(1)) sending.end(other);
    expect(sending.begun.length).toBeGreaterThanOrEqual(2);
  });

  it("leave the thread to others when they take long to begin, and go on where they were", async () => {
    const flow = sending.makeQuick(1);
    sending.stepsLeft = 2;
    sending.queue.add(leased(1, 6));
    expect(sending.order).toHaveLength(2);
    // Neither what ends nor what is added gets ahead of the others meanwhile.
    sending.end(flow);
    sending.queue.add(leased(1, 2));
    expect(sending.order).toHaveLength(2);
    await sending.goOn(100);
    expect(sending.order).toHaveLength(5);
    expect(sending.queue.pause).toBeUndefined();
  });

  it("may end as they begin, by the hundred", () => {
    sending.endsAtOnce = true;
    sending.queue.add(leased(1, 500));
    expect([sending.order.length, sending.queue.size, sending.begun.length]).toEqual([500, 0, 0]);
  });

  it("end without a place where a filter keeps them back, a stretch of them in a turn", () => {
    const [one, two] = [sending.makeQuick(1), sending.makeQuick(2)];
    const claims = leased(1, 200);
    for (const { deliveryId } of claims.slice(0, 199)) sending.unwanted.add(deliveryId);
    sending.queue.add([...claims, ...leased(2, 1)]);
    expect(sending.keptBack).toHaveLength(199);
    // The other one's came after the first stretch.
    expect(sending.order).toEqual([2, 1]);
    expect([one.underWay, one.waiting, two.underWay, sending.queue.size]).toEqual([1, 0, 1, 0]);
    expect(sending.queue.payloadBytes).toBe(0);
  });

  it("leave the thread to others between two looks of a filter", async () => {
    const flow = sending.makeQuick(1);
    const claims = leased(1, 10);
    for (const { deliveryId } of claims) sending.unwanted.add(deliveryId);
    sending.stepsLeft = 4;
    sending.queue.add(claims);
    expect([sending.keptBack.length, flow.waiting]).toEqual([4, 6]);
    await sending.goOn(100);
    expect([sending.keptBack.length, flow.waiting]).toEqual([10, 0]);
  });

  it("wait for their filter to be ready, and hold up nobody else", async () => {
    for (const id of [1, 2]) sending.makeQuick(id);
    const claims = leased(1, 3);
    sending.unwanted.add(claims[0]!.deliveryId);
    const { promise, resolve: ready } = Promise.withResolvers<void>();
    sending.unready.set(1, promise);
    sending.queue.add([...claims, ...leased(2, 2)]);
    expect([sending.order, sending.keptBack]).toEqual([[2, 2], []]);
    expect(sending.queue.pause).toBeInstanceOf(Promise);
    // Neither what comes nor what ends meanwhile begins one.
    sending.queue.add(leased(1, 1));
    sending.end(sending.begun[0]!);
    expect(sending.order).toEqual([2, 2]);
    sending.unready.clear();
    ready();
    await sending.queue.pause;
    expect([sending.order, sending.keptBack]).toEqual([[2, 2, 1, 1, 1], [1]]);
    expect(sending.queue.pause).toBeUndefined();
  });

  it("are handed back when their filter takes too long to be ready", async () => {
    const flow = sending.makeQuick(1);
    sending.unready.set(1, new Promise(() => {}));
    sending.queue.add(leased(1, 2));
    await sending.clock.advance(2_000);
    expect([sending.handedBack, flow.waiting, sending.order]).toEqual([[1, 2], 0, []]);
  });

  it("are handed back when one passes the filter before them whose handler is not known to be quick", () => {
    const flow = sending.flows.of(1);
    const claims = leased(1, 10);
    for (const { deliveryId } of claims.slice(0, 6)) sending.unwanted.add(deliveryId);
    sending.queue.add(claims);
    expect([sending.keptBack.length, flow.underWay, flow.waiting]).toEqual([6, 1, 0]);
    expect(sending.handedBack).toEqual([8, 9, 10]);
    expect(flow.hasMore).toBe(true);
  });

  it("are handed back when their handler has gone silent", async () => {
    const flow = sending.makeQuick(1);
    sending.queue.add(leased(1, 6));
    await sending.clock.advance(1_000);
    expect(sending.handedBack).toEqual([]);
    await sending.clock.advance(1_000);
    expect(sending.handedBack).toEqual([5, 6]);
    expect([flow.waiting, flow.hasMore, sending.queue.size]).toEqual([0, true, 0]);
    expect(sending.clock.pending).toBe(0);
  });

  it("are handed back instead of begun when they have waited too long, as after a sleep of the machine", () => {
    const flow = sending.makeQuick(1);
    sending.queue.add(leased(1, 6));
    sending.clock.set(sending.clock.now() + 60_000);
    sending.end(flow);
    expect(sending.handedBack).toEqual([5, 6]);
    expect(sending.order).toHaveLength(4);
  });

  it("of one subscription can be given up", () => {
    const [one, two] = [sending.makeQuick(1), sending.makeQuick(2)];
    sending.queue.add([...leased(1, 6), ...leased(2, 6)]);
    sending.queue.drop(one);
    expect([one.waiting, two.waiting]).toEqual([0, 3]);
    expect(sending.handedBack).toEqual([4, 5, 6]);
  });

  it("are all handed back at the end, with what still comes", () => {
    sending.makeQuick(1);
    sending.queue.add(leased(1, 6));
    sending.queue.close();
    expect(sending.handedBack).toEqual([5, 6]);
    sending.queue.add(leased(2, 1));
    expect(sending.handedBack).toEqual([5, 6, 7]);
    while (sending.begun[0] !== undefined) sending.end(sending.begun[0]);
    expect(sending.order).toHaveLength(4);
    expect(sending.clock.pending).toBe(0);
  });
});
