import { connect } from "../../src/client/client.ts";
import { answerCalls } from "./calls.ts";

// Consumers of one pull subscription, side by side in a process of their own, that do nothing with what they get.

interface Consuming {
  readonly url: string;
  readonly token: string;
  readonly subscription: number;
  readonly consumers: number;
  readonly deliveries: number;
}

interface Consumed {
  /** Deliveries a second, from the first claim until all results are stored. */
  readonly rate: number;
  /** How many each consumer took. */
  readonly taken: readonly number[];
  /** Deliveries that were given more than once. */
  readonly repeated: number;
}

const CLAIM = { max: 100, wait_ms: 1_000, lease_ms: 60_000 };

async function consume(given: Consuming): Promise<Consumed> {
  const { url, token, subscription, consumers, deliveries } = given;
  const seen = new Set<number>();
  const taken = Array.from({ length: consumers }, () => 0);
  let repeated = 0;
  const startedMs = performance.now();
  const work = async (consumer: number): Promise<void> => {
    const evreg = connect({ url, token });
    while (seen.size < deliveries) {
      const { data } = await evreg.subscriptions.claim(subscription, {
        ...CLAIM,
        consumer: `consumer-${consumer}`,
      });
      if (data.length === 0) continue;
      for (const { delivery_id: id } of data) {
        if (seen.has(id)) repeated += 1;
        seen.add(id);
      }
      taken[consumer]! += data.length;
      const results = data.map(({ lease }) => ({ lease, outcome: "delivered" }) as const);
      const finished = await evreg.subscriptions.finish(subscription, { results });
      const fenced = finished.data.filter(({ outcome }) => outcome !== "stored").length;
      if (fenced > 0) throw new Error(`${fenced} of ${data.length} results were fenced.`);
    }
    await evreg.close();
  };
  await Promise.all(taken.map((_, consumer) => work(consumer)));
  return { rate: deliveries / ((performance.now() - startedMs) / 1_000), taken, repeated };
}

const calls = { consume };
export type ConsumersCalls = typeof calls;

answerCalls(calls);
