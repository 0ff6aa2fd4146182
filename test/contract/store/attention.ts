import { expect, it } from "vitest";
import { Fixture, NOW, type OpenStore } from "./fixture.ts";

const LATER = NOW + 120_000;
/** When a subscription was paused is known from the audit. */
const ADA = { name: "ada", tokenId: 7, address: null };
const at = (ms: number): string => new Date(ms).toISOString();

/** Which subscriptions need a person, and why. */
export function attentionSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  const attention = (query: { readonly applications?: readonly string[]; readonly limit?: number } = {}) =>
    on.store.queue.attention({ nowMs: LATER, limit: 10, ...query });

  it("has the gravest first, and a subscription for its state and for what failed", async () => {
    const action = await on.action();
    const paused = await on.subscription(action, { subscription: "paused" });
    const gone = await on.subscription(action, { subscription: "gone" });
    const failing = await on.subscription(action, { subscription: "failing", maxRetries: 0 });
    await on.publish(action);
    await on.store.catalog.updateSubscription(paused.rowid, { active: false }, NOW + 1, ADA);
    for (const claim of (await on.claim()).claims) {
      const { subscriptionId } = claim.subscription;
      if (subscriptionId === gone.rowid) await on.finish(claim, "gone", { statusCode: 410 });
      else await on.finish(claim, "failed", { statusCode: 500 });
    }
    const { items, total, subscriptions } = await attention();
    const told = items.map(({ reason, subscription_id: id }) => [reason, id]);
    expect(told).toEqual([
      ["deactivated", gone.rowid],
      ["failing", failing.rowid],
      ["failed", expect.any(Number)],
      ["failed", expect.any(Number)],
      ["paused", paused.rowid],
    ]);
    expect({ total, subscriptions }).toEqual({ total: 5, subscriptions: 3 });
    expect(items[0]).toMatchObject({ subscription: "gone", application: "mailer", action: action.action });
    const failed = items.find(
      ({ reason, subscription_id: id }) => reason === "failed" && id === failing.rowid,
    );
    const delivery = (await on.store.queue.list({ subscription: failing.rowid, limit: 1 }))[0]?.rowid;
    expect(failed).toMatchObject({
      deliveries: 1,
      at_least: false,
      delivery_id: delivery,
      error: "HTTP 500",
      published_from: at(NOW),
    });
    expect(items.at(-1)).toMatchObject({ since: at(NOW + 1), deliveries: 1, missed: 0 });
  });
}
