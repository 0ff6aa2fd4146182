import { describe, expect, it } from "vitest";
import type { SubscriptionSettings } from "../../src/domain/subscription-settings.ts";
import type { Subscription } from "../../src/domain/subscription.ts";
import { openReceiver } from "../support/open-receiver.ts";
import type { Answer, Receiver, ReceivedRequest } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { type Bench, countConcurrent, failing, portWith, useBench } from "./engine-setup.ts";

let bench: Bench;
let receiver: Receiver;

useBench((opened) => ({ bench, receiver } = opened));

function eventOf({ headers }: ReceivedRequest): number {
  return Number((headers["x-evreg-delivery"] ?? "").split("_")[0]);
}

const received = (): number[] => receiver.requests.map(eventOf);

/** Each once, in the order of the first time it came. */
const sequence = (): number[] => [...new Set(received())];

/** How many requests came after one for a later event. */
function inversions(events: readonly number[]): number {
  let latest = 0;
  return events.filter((event) => {
    latest = Math.max(latest, event);
    return event < latest;
  }).length;
}

function subscribe(settings: Partial<SubscriptionSettings> = {}): Promise<Subscription> {
  return bench.subscribe(receiver.url, 5, { ordered: true, ...settings });
}

describe("an ordered subscription", () => {
  // Events without the key have one together, and so the same promises as those of a subscription that has one order.
  it.each([
    ["as a whole", true],
    ["by a key", { key: "/k" }],
  ])("is sent one delivery at a time in the order of publication, ordered %s", async (_, ordered) => {
    const counted = countConcurrent(receiver);
    const subscription = await subscribe({ ordered });
    const events = await bench.publish(subscription, 150);
    bench.engine().start();
    await bench.untilDelivered(subscription, 150);
    expect(received()).toEqual(events);
    expect(counted.most).toBe(1);
  });

  it("keeps the order through failures of any kind, and delays no other", async () => {
    const answers: Answer[] = [
      {},
      {},
      {},
      { status: 500 },
      { status: 503 },
      { status: 429, headers: { "retry-after": "1" } },
      "reset",
    ];
    const ended = new Set<number>();
    let tooEarly = 0;
    let at = 7;
    receiver.answer = (request) => {
      // A walk through all answers that is not in step with the events.
      at = (at * 75 + 74) % 65_537;
      const given = answers[at % answers.length]!;
      const event = eventOf(request);
      if (ended.has(event - 1) || event === first) {
        if (typeof given === "object" && !("raw" in given) && given.status === undefined) ended.add(event);
      } else tooEarly += 1;
      return given;
    };
    const subscription = await subscribe({ retry_schedule: null });
    const events = await bench.publish(subscription, 60);
    const first = events[0];
    const other = await openReceiver();
    const undisturbed = await bench.withEvents(100, other.url);
    bench.engine().start();
    await bench.untilDelivered(undisturbed, 100);
    await until("all to be delivered", async () => {
      await bench.advance(2_000, 1_000);
      return (await bench.statuses(subscription))["delivered"] === events.length;
    });
    expect([inversions(received()), tooEarly]).toEqual([0, 0]);
    expect(sequence()).toEqual(events);
    expect(receiver.requests.length).toBeGreaterThan(80);
  });

  it("starts none before the result of the one before is stored", async () => {
    const results = failing(bench.store.queue, "finish");
    results.isDown = false;
    const subscription = await subscribe();
    const warm = await bench.publish(subscription, 50);
    const engine = bench.started({}, { store: results.store });
    await bench.untilDelivered(subscription, 50);
    results.isDown = true;
    const [first, ...others] = await bench.publish(subscription, 20);
    engine.wake();
    await receiver.received(51);
    const { asked } = results;
    await bench.advance(5_000, 100);
    expect(received()).toEqual([...warm, first]);
    expect(results.asked).toBeGreaterThan(asked);
    results.isDown = false;
    await bench.advance(5_000, 500);
    await bench.untilDelivered(subscription, 70);
    expect(received()).toEqual([...warm, first, ...others]);
  });

  it("sends nothing after an attempt that does not count", async () => {
    const subscription = await subscribe();
    const warm = await bench.publish(subscription, 50);
    let lost = 0;
    const store = portWith(bench.store.queue, {
      finish: (results, ...given) => {
        const delivered = results.filter(({ ending }) => ending === "delivered");
        if (receiver.requests.length < warm.length + 3 || delivered.length === 0 || lost > 0) {
          return bench.store.queue.finish(results, ...given);
        }
        lost += 1;
        // As when another lease has been given for it meanwhile.
        return bench.store.queue.finish(
          results.map((result) => ({ ...result, claimId: result.claimId + 1 })),
          ...given,
        );
      },
    });
    const engine = bench.started({ timeoutMs: 60_000 }, { store });
    await bench.untilDelivered(subscription, 50);
    const events = await bench.publish(subscription, 50);
    engine.wake();
    await until("one to be lost", () => lost === 1);
    const soFar = receiver.requests.length;
    await bench.advance(100, 10);
    expect(receiver.requests).toHaveLength(soFar);
    // No further than that: the clock would run out for what is under way.
    await until("the lease to end", async () => {
      await bench.advance(5_000, 5_000);
      return receiver.requests.length > soFar;
    });
    await bench.untilDelivered(subscription, 100);
    expect(lost).toBe(1);
    expect(received()).toHaveLength(101);
    expect(inversions(received())).toBe(0);
    expect(sequence()).toEqual([...warm, ...events]);
  });

  it("keeps the order over restarts", async () => {
    const subscription = await subscribe();
    const events = await bench.publish(subscription, 150);
    const delivered = async (): Promise<number> => (await bench.statuses(subscription))["delivered"] ?? 0;
    for (let before = 0, start = 1; before < 150; before = await delivered(), start += 1) {
      const engine = bench.engine();
      const enough = Math.min(150, before + 20);
      engine.start();
      await until("some more to be delivered", async () => (await delivered()) >= enough);
      await engine.stop(start % 2 === 0 ? 0 : 1_000);
    }
    expect(inversions(received())).toBe(0);
    expect(sequence()).toEqual(events);
  });
});
