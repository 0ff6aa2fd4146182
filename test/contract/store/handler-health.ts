import { expect, it } from "vitest";
import type { AttemptResult, Claim, FinishOutcome, AttemptEnding } from "../../../src/store/queue.ts";
import { Fixture, NOW, type OpenStore, resultOf } from "./fixture.ts";

const NOTHING = { claims: [], nextDueAtMs: undefined, limitedTiers: [] };
const RETRIED = { kind: "stored", state: "pending", retryAtMs: expect.any(Number) as number };
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

/** What is kept of handlers with their subscriptions: that they are slowed, and for how long they have failed. */
export function handlerHealthSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  /** A subscription with `count` deliveries due. */
  async function due(count: number, name = "welcome"): Promise<{ id: number; handler: string }> {
    const action = (await on.store.catalog.findAction(`${name}.sent`)) ?? (await on.action(`${name}.sent`));
    const { rowid: id, handler } = await on.subscription(action, {
      subscription: name,
      maxRetries: 100,
      settings: { retry_schedule: [0] },
    });
    await on.publish(action, count);
    return { id, handler };
  }

  async function claimOne(nowMs: number): Promise<Claim> {
    const [claim] = (await on.claim({ nowMs, most: 1, limit: 1 })).claims;
    if (claim === undefined) throw new Error("one was due");
    return claim;
  }

  function finishAt(
    nowMs: number,
    claim: Claim,
    next: AttemptEnding,
    given: Partial<AttemptResult> = {},
  ): Promise<readonly FinishOutcome[]> {
    const result = resultOf(claim, next, { statusCode: 503, ...given });
    return on.store.queue.finish([result], nowMs, { disableAfterMs: 5 * DAY_MS });
  }

  /** Fails one attempt of the only subscription, due again at once. */
  async function fail(nowMs: number): Promise<readonly FinishOutcome[]> {
    return finishAt(nowMs, await claimOne(nowMs), "failed");
  }

  /** Fails an attempt whose handler wants a pause. */
  function slowBy(claim: Claim | undefined, slowUntilMs: number): Promise<readonly FinishOutcome[]> {
    return finishAt(NOW + 20, claim!, "failed", { slowUntilMs });
  }

  const found = (id: number) => on.store.catalog.findSubscription(id);

  it("claims nothing of a subscription that is slowed before the time, and all of others", async () => {
    const slowed = await due(3);
    const untilMs = NOW + HOUR_MS;
    const waits = { retryAfterMs: 1_999, slowUntilMs: untilMs };
    await finishAt(NOW + 1, await claimOne(NOW + 1), "failed", waits);
    expect(await on.claim({ nowMs: untilMs - 1 })).toEqual({ ...NOTHING, nextDueAtMs: untilMs });
    const other = await due(2, "other");
    const { claims, nextDueAtMs } = await on.claim({ nowMs: untilMs - 1 });
    expect(claims.map(({ subscription }) => subscription.subscriptionId)).toEqual([other.id, other.id]);
    expect(nextDueAtMs).toBe(untilMs);
    expect((await found(slowed.id))?.slowed_until).toBe(new Date(untilMs).toISOString());
    // Nothing was tried meanwhile, so nothing counts against the retries.
    const { claims: after } = await on.claim({ nowMs: untilMs });
    expect(after.map(({ attempt, failures }) => [attempt, failures])).toEqual([
      [1, 0],
      [1, 0],
      [2, 1],
    ]);
  });

  it("tells when something comes due after the slowness has ended", async () => {
    await due(1);
    const waits = { retryAfterMs: 8_999, slowUntilMs: NOW + 5_000 };
    await finishAt(NOW + 1, await claimOne(NOW + 1), "failed", waits);
    expect((await on.claim({ nowMs: NOW + 2 })).nextDueAtMs).toBe(NOW + 9_000);
  });

  it("never shortens what was asked for, and forgets it for another handler or when a person says so", async () => {
    const { id } = await due(4);
    const claims = (await on.claim({ nowMs: NOW + 10 })).claims;
    await slowBy(claims[0], NOW + HOUR_MS);
    await slowBy(claims[1], NOW + 1_000);
    expect((await found(id))?.slowed_until).toBe(new Date(NOW + HOUR_MS).toISOString());
    await on.store.catalog.updateSubscription(id, { active: true }, NOW);
    expect(await found(id)).toMatchObject({ slowed_until: null, failing_since: null });
    await slowBy(claims[2], NOW + HOUR_MS);
    await on.store.catalog.updateSubscription(id, { handler: "https://moved.example/" }, NOW);
    expect((await found(id))?.slowed_until).toBeNull();
    // From an attempt at the handler it has left.
    await slowBy(claims[3], NOW + HOUR_MS);
    expect((await found(id))?.slowed_until).toBeNull();
    expect((await on.claim({ nowMs: NOW + 30 })).claims).toHaveLength(4);
  });

  it("claims what a person asks for at once, before all else, also while its subscription is slowed", async () => {
    await due(5);
    const first = await claimOne(NOW + 10);
    await finishAt(NOW + 20, first, "failed", { slowUntilMs: NOW + HOUR_MS });
    expect((await on.claim({ nowMs: NOW + 30 })).claims).toEqual([]);
    const again = await on.store.queue.retry(first.deliveryId, NOW + 40);
    expect(again).toMatchObject({ status: "pending", next_attempt_at: new Date(NOW + 40).toISOString() });
    expect((await on.store.queue.list({ status: "pending", limit: 9 })).length).toBe(5);
    const answer = await on.claim({ nowMs: NOW + 40 });
    expect(answer.claims.map(({ deliveryId, attempt }) => [deliveryId, attempt])).toEqual([
      [first.deliveryId, 2],
    ]);
    // It comes due as any other after that attempt.
    await finishAt(NOW + 50, answer.claims[0]!, "failed", { retryAfterMs: 1_950 });
    expect(await on.claim({ nowMs: NOW + 3_000 })).toEqual({ ...NOTHING, nextDueAtMs: NOW + HOUR_MS });
  });

  it("deactivates one whose attempts have all failed for the time given, and holds its deliveries", async () => {
    const { id } = await due(2);
    for (let atMs = NOW; atMs < NOW + 5 * DAY_MS; atMs += 6 * HOUR_MS) {
      expect(await fail(atMs)).toEqual([RETRIED]);
    }
    const reason = `Every attempt since ${new Date(NOW).toISOString()} has failed, the last with HTTP 503. Its deliveries are held until it is reactivated.`;
    expect(await fail(NOW + 5 * DAY_MS)).toEqual([
      { ...RETRIED, deactivated: { subscriptionId: id, reason } },
    ]);
    expect(await found(id)).toMatchObject({ active: false, disabled_reason: reason });
    expect((await on.store.queue.list({ status: "held", limit: 9 })).length).toBe(2);
    expect(await on.claim({ nowMs: NOW + 9 * DAY_MS })).toEqual(NOTHING);
    // It starts anew when it is reactivated.
    await on.store.catalog.updateSubscription(id, { active: true }, NOW + 9 * DAY_MS);
    expect(await fail(NOW + 9 * DAY_MS)).toEqual([RETRIED]);
    expect(await found(id)).toMatchObject({ active: true, disabled_reason: null });
  });

  it("keeps where the time of an attempt went that had a connection made for it", async () => {
    await due(2);
    const connection = { dnsMs: 3.4, connectMs: 21.6, firstByteMs: undefined };
    const [one, two] = (await on.claim({ nowMs: NOW + 10 })).claims;
    await on.store.queue.finish(
      [
        resultOf(one!, "failed", { errorCode: "timeout", connection }),
        resultOf(two!, "delivered", { statusCode: 200, response: "ok" }),
      ],
      NOW,
    );
    expect((await on.store.queue.find(one!.deliveryId))?.attempts).toMatchObject([
      { error_code: "timeout", dns_ms: 3, connect_ms: 22, first_byte_ms: null },
    ]);
    expect((await on.store.queue.find(two!.deliveryId))?.attempts).toMatchObject([
      { response: "ok", dns_ms: null, connect_ms: null, first_byte_ms: null },
    ]);
  });
}
