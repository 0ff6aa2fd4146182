import { expect, it } from "vitest";
import type { Claim } from "../../../src/store/store.ts";
import { eventOf, Fixture, NOW, type OpenStore } from "./fixture.ts";

const NOTHING = { claims: [], nextDueAtMs: undefined, limitedTiers: [] };

/** How many claims each subscription got. */
function per(claims: readonly Claim[]): Record<number, number> {
  const counts: Record<number, number> = {};
  for (const { subscription } of claims) {
    counts[subscription.subscriptionId] = (counts[subscription.subscriptionId] ?? 0) + 1;
  }
  return counts;
}

export function claimSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  it("answers all that is needed to send", async () => {
    const action = await on.action();
    const mine = await on.subscription(action, { maxRetries: 3 });
    const payload = '{"id": 1.0}';
    await on.store.recordEvents([eventOf(action, payload)], NOW);
    const { claims, nextDueAtMs } = await on.claim();
    expect(claims).toHaveLength(1);
    expect(nextDueAtMs).toBeUndefined();
    const [claim] = claims;
    expect(claim).toMatchObject({
      attempt: 1,
      failures: 0,
      event: { action: "user.created", timestampedMs: NOW },
      subscription: {
        subscriptionId: mine.rowid,
        handler: mine.handler,
        secret: "secret of welcome",
        maxRetries: 3,
      },
    });
    expect(Buffer.from(claim?.event.payload ?? []).toString()).toBe(payload);
    expect(await on.store.findDelivery(claim?.deliveryId ?? 0)).toMatchObject({
      status: "delivering",
      attempt: 1,
      event_id: claim?.event.eventId,
      next_attempt_at: null,
      attempts: [],
    });
  });

  it("leases a delivery once, and only when it is due", async () => {
    const action = await on.action();
    await on.subscription(action);
    await on.publish(action, 1, NOW + 10_000);
    expect(await on.claim({ nowMs: NOW + 9_999 })).toEqual({
      claims: [],
      nextDueAtMs: NOW + 10_000,
      limitedTiers: [],
    });
    expect((await on.claim({ nowMs: NOW + 10_000 })).claims).toHaveLength(1);
    expect(await on.claim({ nowMs: NOW + 10_000 })).toEqual(NOTHING);
  });

  it("never leases one twice to callers at the same moment", async () => {
    const action = await on.action();
    for (const subscription of ["a", "b", "c"]) await on.subscription(action, { subscription });
    await on.publish(action, 20);
    const answers = await Promise.all(Array.from({ length: 10 }, () => on.claim({ limit: 9 })));
    const ids = answers.flatMap(({ claims }) => claims.map(({ deliveryId }) => deliveryId));
    expect(ids).toHaveLength(60);
    expect(new Set(ids).size).toBe(60);
  });

  it("takes turns over subscriptions, however long one's backlog is", async () => {
    const [busy, quiet] = [await on.action("busy"), await on.action("quiet")];
    const long = await on.subscription(busy, { subscription: "long" });
    await on.publish(busy, 30);
    const [one, two] = [
      await on.subscription(quiet, { subscription: "one" }),
      await on.subscription(quiet, { subscription: "two" }),
    ];
    await on.publish(quiet, 2, NOW + 1_000);
    const first = await on.claim({ limit: 3 });
    expect(per(first.claims)).toEqual({ [long.rowid]: 1, [one.rowid]: 1, [two.rowid]: 1 });
    expect(first.limitedTiers).toEqual([0]);
    const second = await on.claim({
      limit: 8,
      leased: new Map(Object.entries(per(first.claims)).map(([id, n]) => [Number(id), n])),
    });
    expect(per(second.claims)).toEqual({ [long.rowid]: 6, [one.rowid]: 1, [two.rowid]: 1 });
  });

  it("serves the one with the fewest under way first, even with a single place", async () => {
    const [old, fresh] = [await on.action("old"), await on.action("fresh")];
    const backlogged = await on.subscription(old, { subscription: "backlogged" });
    await on.publish(old, 10);
    const newcomer = await on.subscription(fresh, { subscription: "newcomer" });
    await on.publish(fresh, 1, NOW + 5_000);
    const { claims } = await on.claim({ limit: 1, leased: new Map([[backlogged.rowid, 3]]) });
    expect(per(claims)).toEqual({ [newcomer.rowid]: 1 });
  });

  it("gives a subscription no more than its room, and does not call for it meanwhile", async () => {
    const action = await on.action();
    const mine = await on.subscription(action);
    await on.publish(action, 10);
    const first = await on.claim({ most: 4, leased: new Map([[mine.rowid, 1]]) });
    expect(first.claims).toHaveLength(3);
    // Seven more are due, but not before one of these has ended.
    expect([first.nextDueAtMs, first.limitedTiers]).toEqual([undefined, []]);
    const full = await on.claim({ most: 4, leased: new Map([[mine.rowid, 4]]) });
    expect(full).toEqual(NOTHING);
    const over = await on.claim({ most: 4, leased: new Map([[mine.rowid, 9]]) });
    expect(over).toEqual(NOTHING);
  });

  it("says when to come back: once there is room while more is due, else at the next time", async () => {
    const action = await on.action();
    await on.subscription(action);
    await on.publish(action, 3);
    const some = await on.claim({ limit: 2 });
    expect([some.nextDueAtMs, some.limitedTiers]).toEqual([undefined, [0]]);
    const [claim, other] = some.claims;
    if (claim === undefined || other === undefined) throw new Error("two were due");
    await on.finish(claim, { kind: "retry", atMs: NOW + 80_000 }, { statusCode: 500 });
    await on.finish(other, { kind: "retry", atMs: NOW + 70_000 }, { statusCode: 500 });
    const rest = await on.claim({ nowMs: NOW + 62_000 });
    expect(rest.claims).toHaveLength(1);
    expect([rest.nextDueAtMs, rest.limitedTiers]).toEqual([NOW + 70_000, []]);
    expect((await on.claim({ limit: 0, nowMs: NOW + 62_000 })).limitedTiers).toEqual([0]);
  });

  it("takes what is longest due of a subscription first", async () => {
    const action = await on.action();
    await on.subscription(action);
    const [first = 0, second = 0] = await on.publish(action, 2);
    const { claims } = await on.claim({ limit: 1 });
    const [claim] = claims;
    if (claim === undefined) throw new Error("one was due");
    expect(claim.event.eventId).toBe(first);
    await on.finish(claim, { kind: "retry", atMs: NOW + 30_000 }, { statusCode: 500 });
    expect((await on.claim({ limit: 1 })).claims.map(({ event }) => event.eventId)).toEqual([second]);
    expect((await on.claim({ limit: 1 })).claims).toMatchObject([
      { event: { eventId: first }, attempt: 2, failures: 1 },
    ]);
  });
}
