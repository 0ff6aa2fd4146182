import { expect, it } from "vitest";
import type { Action } from "../../../src/domain/action.ts";
import type { Subscription } from "../../../src/domain/subscription.ts";
import type { SubscriptionSettings } from "../../../src/domain/subscription-settings.ts";
import type { Claim, PullConsumer } from "../../../src/store/queue.ts";
import { Fixture, NOW, type OpenStore, resultOf } from "./fixture.ts";

const LEASE_MS = 10_000;
const LATER = NOW + 60_000;

/** Deliveries that consumers take, and leases that last as long as they ask for. */
export function pullSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  function subscribed(
    { action }: Action,
    subscription = "worker",
    settings: Partial<SubscriptionSettings> = {},
  ): Promise<Subscription> {
    const names = { application: "mailer", subscription, action, handler: null };
    const record = { ...names, maxRetries: 5, active: true, secret: `secret of ${subscription}`, settings };
    return on.store.catalog.createSubscription(record, NOW);
  }

  async function take(
    { rowid }: Subscription,
    { consumer = "one", leaseMs = LEASE_MS, most = 100, nowMs = LATER } = {},
  ): Promise<readonly Claim[]> {
    const from: PullConsumer = { consumer, leaseMs, maxClaims: most };
    const { claims } = await on.store.queue.claimForConsumers({
      nowMs,
      consumers: [[rowid, from]],
      maxClaims: 100,
      maxPayloadBytes: 64 * 1024 * 1024,
    });
    return claims;
  }

  it("are given to consumers of their own subscription, and to nobody else", async () => {
    const action = await on.action();
    const one = await subscribed(action, "one");
    const other = await subscribed(action, "other");
    await on.subscription(action, { subscription: "pushed" });
    await on.publish(action, 2);
    expect(await take(one, { most: 1 })).toMatchObject([{ subscription: { subscriptionId: one.rowid } }]);
    expect(await take(one)).toHaveLength(1);
    expect(await take(one)).toEqual([]);
    expect((await on.claim()).claims).toHaveLength(2);
    expect(await take(other)).toHaveLength(2);
  });

  it("have leases that are extended while they are held, and end otherwise", async () => {
    const action = await on.action();
    const subscription = await subscribed(action);
    await on.publish(action);
    const [claim] = await take(subscription);
    const { deliveryId, claimId } = claim!;
    const untilMs = LATER + 2 * LEASE_MS;
    const { queue } = on.store;
    expect(
      await queue.extend([
        { deliveryId, claimId: claimId + 1, untilMs },
        { deliveryId, claimId, untilMs },
        { deliveryId: deliveryId + 1, claimId, untilMs },
      ]),
    ).toEqual([false, true, false]);
    expect(await queue.releaseExpired(LATER + LEASE_MS)).toBe(0);
    expect(await queue.releaseExpired(untilMs)).toBe(1);
    expect(await queue.extend([{ deliveryId, claimId, untilMs }])).toEqual([false]);
    expect(await queue.finish([resultOf(claim!, "delivered")], untilMs)).toEqual([{ kind: "fenced" }]);
  });

  it("leave the time of the last claim, to the minute, also of one that brought nothing", async () => {
    const subscription = await subscribed(await on.action());
    const lastClaim = async (): Promise<string | null | undefined> =>
      (await on.store.catalog.findSubscription(subscription.rowid))?.last_claim_at;
    // Also where the clock was set back.
    for (const [nowMs, storedMs] of [
      [LATER, LATER],
      [LATER + 59_999, LATER],
      [LATER + 60_000, LATER + 60_000],
      [LATER, LATER],
    ] as const) {
      await take(subscription, { nowMs });
      expect(await lastClaim()).toBe(new Date(storedMs).toISOString());
    }
  });
}
