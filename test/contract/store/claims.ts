import { expect, it } from "vitest";
import type { Claim } from "../../../src/store/queue.ts";
import { claimRequest } from "../../support/claim-request.ts";
import { eventOf, Fixture, NOW, type OpenStore, recordedRowid, resultOf } from "./fixture.ts";

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

  /** Records events in a call that leases the first one's deliveries to these subscriptions. */
  const recordClaimed = (
    events: readonly ReturnType<typeof eventOf>[],
    subscriptions: readonly number[],
    nowMs = NOW,
  ) =>
    on.events.record(events, nowMs, {
      claim: { subscriptions, leaseMs: 60_000 },
    });

  it("answers one event for all its deliveries, and a payload of no bytes", async () => {
    const action = await on.action();
    for (const subscription of ["a", "b"]) await on.subscription(action, { subscription });
    await on.record([eventOf(action, ""), eventOf(action, "{}")]);
    const { claims } = await on.claim();
    const events = [...new Set(claims.map(({ event }) => event))];
    expect(claims).toHaveLength(4);
    expect(events.map(({ payload }) => Buffer.from(payload!).toString())).toEqual(["", "{}"]);
  });

  it("reads a payload once for all consumers that get its event", async () => {
    const action = await on.action();
    const common = { application: "mailer", action: action.action, handler: null, secret: "secret" };
    const ids: number[] = [];
    for (const subscription of ["a", "b"]) {
      const record = { ...common, subscription, maxRetries: 5, active: true, settings: {} };
      ids.push((await on.catalog.createSubscription(record, NOW)).rowid);
    }
    await on.record([eventOf(action, "{}")]);
    const consumers = ids.map((id) => [id, { consumer: "one", leaseMs: 60_000, maxClaims: 9 }] as const);
    const request = { nowMs: NOW, consumers, maxClaims: 9, maxPayloadBytes: 100 };
    const { claims } = await on.queue.claimForConsumers(request);
    expect(claims.map(({ event }) => Buffer.from(event.payload!).toString())).toEqual(["{}", "{}"]);
    expect(claims[0]!.event.payload!.buffer).toBe(claims[1]!.event.payload!.buffer);
  });

  it("tells evreg of what is due next in an order, whatever results of consumers are stored with it", async () => {
    const [pulled, pushed] = [await on.action("pulled"), await on.action("pushed")];
    const common = {
      application: "mailer",
      subscription: "pull",
      handler: null,
      secret: "secret",
      maxRetries: 5,
    };
    const { rowid: pull } = await on.catalog.createSubscription(
      { ...common, action: pulled.action, active: true, settings: {} },
      NOW,
    );
    await on.subscription(pushed, { settings: { ordered: true } });
    await on.record([eventOf(pulled), eventOf(pushed), eventOf(pushed)]);
    const consumers = [[pull, { consumer: "one", leaseMs: 60_000, maxClaims: 9 }]] as const;
    const taken = await on.queue.claimForConsumers({
      nowMs: NOW,
      consumers,
      maxClaims: 9,
      maxPayloadBytes: 100,
    });
    const sent = await on.claim();
    const results = [...taken.claims, ...sent.claims].map((one) => resultOf(one, "delivered"));
    expect(results).toHaveLength(2);
    expect(await on.queue.finish(results, NOW + 60_000)).toEqual([
      { kind: "stored", state: "delivered" },
      { kind: "stored", state: "delivered", isNextDue: true },
    ]);
  });

  it("has one object of settings for all claims that are held, as a filter may be large", async () => {
    const action = await on.action();
    const settings = { filter: { properties: { id: { const: 1 } } } };
    const { rowid } = await on.subscription(action, { settings });
    const held: unknown[] = [];
    for (let index = 0; index < 2; index += 1) {
      const [outcome] = await recordClaimed([eventOf(action)], [rowid]);
      held.push(
        ...((outcome?.kind === "recorded" && outcome.claims) || []).map((one) => one.subscription.settings),
      );
    }
    await on.record([eventOf(action)]);
    held.push(...(await on.claim()).claims.map((one) => one.subscription.settings));
    expect(held).toHaveLength(3);
    expect(held[0]).toMatchObject(settings);
    expect(new Set(held).size).toBe(1);
  });

  it("leases deliveries as they are made, for the subscriptions that are named, with all that is needed to send", async () => {
    const action = await on.action();
    const [named, other] = [
      await on.subscription(action, { subscription: "named" }),
      await on.subscription(action, { subscription: "other", maxRetries: 3 }),
    ];
    const payload = '{"id": 1.0}';
    const [outcome] = await recordClaimed([eventOf(action, payload)], [named.rowid]);
    const eventId = recordedRowid(outcome);
    expect(outcome).toMatchObject({ deliveries: 2 });
    const [claimed] = outcome?.kind === "recorded" ? (outcome.claims ?? []) : [];
    const { claims, nextDueAtMs } = await on.claim({ nowMs: NOW });
    expect([claims.length, nextDueAtMs, claims[0]?.isFromReplay]).toEqual([1, undefined, false]);
    for (const [claim, { rowid, subscription: name, handler, max_retries: maxRetries }] of [
      [claimed!, named],
      [claims[0]!, other],
    ] as const) {
      expect(claim).toMatchObject({ attempt: 1, failures: 0, event: { eventId, action: "user.created" } });
      expect([claim.event.timestampedMs, Buffer.from(claim.event.payload!).toString()]).toEqual([
        NOW,
        payload,
      ]);
      const secret = `secret of ${name}`;
      expect(claim.subscription).toMatchObject({ subscriptionId: rowid, name, handler, maxRetries, secret });
      const { deliveryId } = claim;
      const under = {
        status: "delivering",
        attempt: 1,
        event_id: eventId,
        next_attempt_at: null,
        attempts: [],
      };
      expect(await on.queue.find(deliveryId)).toMatchObject(under);
      expect(await on.finish(claim, "delivered")).toBe(true);
      expect(await on.queue.find(deliveryId)).toMatchObject({ status: "delivered", attempt: 1 });
    }
  });

  it("leaves due what may not be sent at once, though it is named as it is made", async () => {
    const action = await on.action();
    const [ordered, slow, paused, gone] = await Promise.all(
      ["ordered", "slow", "paused", "gone"].map((subscription) =>
        on.subscription(action, { subscription, settings: { ordered: subscription === "ordered" } }),
      ),
    );
    await on.publish(action);
    const first = (await on.claim()).claims.find(
      ({ subscription: { subscriptionId } }) => subscriptionId === slow!.rowid,
    )!;
    const untilMs = NOW + 120_000;
    await on.fail(first, untilMs, { statusCode: 429, slowUntilMs: untilMs });
    await on.update(paused!.rowid, { active: false });
    await on.catalog.deleteSubscription(gone!.rowid, NOW);
    const subscriptions = [ordered, slow, paused, gone].map((one) => one!.rowid);
    const named = [...subscriptions, 999_999];
    const [outcome] = await recordClaimed([eventOf(action)], named, NOW + 61_000);
    expect(outcome).toMatchObject({ kind: "recorded", deliveries: 2 });
    expect(outcome).not.toHaveProperty("claims");
  });

  it("leases nothing with an event that is not recorded, and with many only for the first that is", async () => {
    const action = await on.action();
    const { rowid } = await on.subscription(action);
    const keyed = eventOf(action, "{}", "key");
    const stale = { ...eventOf(action), revision: 99 };
    await on.record([keyed]);
    const outcomes = await recordClaimed([keyed, stale, eventOf(action), eventOf(action)], [rowid]);
    expect(outcomes.map(({ kind }) => kind)).toEqual(["replayed", "stale", "recorded", "recorded"]);
    expect(outcomes.map((outcome) => "claims" in outcome)).toEqual([false, false, true, false]);
    expect((await on.claim()).claims).toHaveLength(2);
    // Its lease lasts as long as was asked for.
    expect(await on.queue.releaseExpired(NOW + 59_999)).toBe(0);
    expect(await on.queue.releaseExpired(NOW + 60_000)).toBe(1);
  });

  it("leases each to only one of several concurrent callers", async () => {
    const action = await on.action();
    for (const subscription of ["a", "b", "c"]) await on.subscription(action, { subscription });
    await on.publish(action, 20);
    const answers = await Promise.all(Array.from({ length: 10 }, () => on.claim({ limit: 9 })));
    const ids = answers.flatMap(({ claims }) => claims.map(({ deliveryId }) => deliveryId));
    expect(ids).toHaveLength(60);
    expect(new Set(ids).size).toBe(60);
  });

  it("rotates over subscriptions, however long a backlog is", async () => {
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

  it("returns at most the requested bytes of payloads, at least one, and a shared payload once", async () => {
    const action = await on.action();
    for (const subscription of ["a", "b", "c"]) await on.subscription(action, { subscription });
    for (let event = 0; event < 3; event += 1) {
      await on.events.record([eventOf(action, JSON.stringify("x".repeat(998)))], NOW + event);
    }
    const claim = (maxPayloadBytes: number): ReturnType<typeof on.claim> =>
      on.queue.claim({ ...claimRequest({ nowMs: NOW + 60_000 }), maxPayloadBytes });
    const first = await claim(2_999);
    expect(first.claims).toHaveLength(6);
    expect(new Set(first.claims.map(({ event }) => event)).size).toBe(2);
    expect(first.limitedTiers).toEqual([0]);
    const last = await claim(1);
    expect(last.claims).toHaveLength(3);
    expect(new Set(last.claims.map(({ event }) => event.payload)).size).toBe(1);
    expect(await claim(1)).toEqual(NOTHING);
  });
}
