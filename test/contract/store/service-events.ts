import { beforeEach, expect, it } from "vitest";
import type { Action } from "../../../src/domain/action.ts";
import { SERVICE_EVENT_NAMES, SERVICE_EVENT_SCHEMAS } from "../../../src/domain/service-events.ts";
import type { Subscription } from "../../../src/domain/subscription.ts";
import { compileSchema } from "../../../src/schema/validate/compile.ts";
import type { Claim, AttemptEnding } from "../../../src/store/queue.ts";
import { Fixture, NOW, type OpenStore, resultOf } from "./fixture.ts";

const LATER = NOW + 61_000;
/** What is reported of the subscription of the tests. */
const REPORTED = {
  application: "mailer",
  subscription: "welcome",
  action: "user.created",
  handler_host: "mailer.example",
};
const NO_RETRIES = { maxRetries: 0 } as const;

/** What the service records about itself, and that it ends there. */
export function serviceEventSuite(open: OpenStore): void {
  const on = Fixture.use(open);
  let action: Action;
  beforeEach(async () => {
    action = await on.action();
  });

  async function operator(name: string, active = true): Promise<Subscription> {
    const found = await on.catalog.findAction(name);
    if (found === undefined) throw new Error(`there is no action ${name}`);
    return on.subscription(found, { application: "ops", subscription: name, active });
  }

  function operators(name: string, count: number): Promise<unknown> {
    const named = { ...action, action: name };
    const made = (_: unknown, index: number) =>
      on.subscription(named, { application: "ops", subscription: `${index}` });
    return Promise.all(Array.from({ length: count }, made));
  }

  /** The payloads recorded of an action, each held to its schema. */
  async function payloadsOf(name: (typeof SERVICE_EVENT_NAMES)[number]): Promise<unknown[]> {
    const { events } = await on.events.list({ action: name, order: "asc", limit: 500, page: 1 });
    const validator = compileSchema(SERVICE_EVENT_SCHEMAS[name]);
    return events.map(({ payload }) => {
      const value: unknown = JSON.parse(Buffer.from(payload!).toString());
      expect(validator.validate(value)).toBeUndefined();
      return value;
    });
  }

  async function finishAll(ending: AttemptEnding, statusCode = 500): Promise<readonly Claim[]> {
    const { claims } = await on.claim();
    const results = claims.map((claim) => resultOf(claim, ending, { statusCode }));
    await on.queue.finish(results, LATER);
    return claims;
  }

  it("have their actions from the start", async () => {
    const own = await on.catalog.listActions({ application: "evreg" });
    expect(own.map(({ action: name }) => name)).toEqual(SERVICE_EVENT_NAMES.toSorted());
    for (const { action: name, revision, schemata } of own) {
      expect(revision).toBe(1);
      expect(schemata).toEqual(SERVICE_EVENT_SCHEMAS[name as keyof typeof SERVICE_EVENT_SCHEMAS]);
      expect(await on.catalog.findAction(name)).toMatchObject({ isBuiltIn: true });
    }
  });

  it.each([
    ["its subscription stops blocking for it", "update"],
    ["a person skips it", "skip"],
  ])("record a delivery that fails as %s", async (_, change) => {
    await operator("evreg.delivery.failed");
    const subscription = await on.subscription(action, { maxRetries: 0, settings: { ordered: true } });
    await on.publish(action);
    const [claim] = await finishAll("failed", 503);
    expect(await payloadsOf("evreg.delivery.failed")).toEqual([]);
    const settings = { on_exhausted: "skip" } as const;
    if (change === "skip") await on.queue.skip(claim!.deliveryId, LATER + 1);
    else await on.update(subscription.rowid, { settings }, LATER + 1);
    const failed = { delivery_id: claim?.deliveryId, attempts: 1, last_error: "HTTP 503" };
    expect(await payloadsOf("evreg.delivery.failed")).toMatchObject([failed]);
  });

  it("record a delivery that failed for good, with a delivery to each subscriber, due at once", async () => {
    const two = [await operator("evreg.delivery.failed"), await operator("evreg.replay.finished")];
    await operator("evreg.subscription.deactivated", false);
    const subscription = await on.subscription(action, NO_RETRIES);
    const [event] = await on.publish(action);
    const [claim] = await finishAll("failed", 503);
    const { deliveryId: delivery_id } = claim!;
    const failed = { attempts: 1, last_error: "HTTP 503", failed_at: "2026-03-01T12:01:01.000Z" };
    const published = { event_id: event, published_at: "2026-03-01T12:00:00.000Z" };
    expect(await payloadsOf("evreg.delivery.failed")).toEqual([
      { delivery_id, ...published, subscription_id: subscription.rowid, ...REPORTED, ...failed },
    ]);
    const { claims } = await on.claim({ nowMs: LATER });
    expect(
      claims.map(({ event: { action: name }, subscription: { subscriptionId } }) => [name, subscriptionId]),
    ).toEqual([["evreg.delivery.failed", two[0]?.rowid]]);
  });

  it("record nothing for a delivery that is retried, was delivered, cut short or no longer valid", async () => {
    await operator("evreg.delivery.failed");
    await on.subscription(action);
    await on.publish(action, 4);
    const { claims } = await on.claim();
    // The handler that is gone is reported by a claim that is not valid any more.
    const endings: AttemptEnding[] = ["delivered", "failed", "interrupted", "gone"];
    const results = claims.map((claim, index) => {
      const claimId = index === 3 ? claim.claimId + 1_000 : claim.claimId;
      return resultOf(claim, endings[index]!, { claimId });
    });
    await on.queue.finish(results, LATER);
    expect(await payloadsOf("evreg.delivery.failed")).toEqual([]);
  });

  it("record nothing while nobody has an active subscription", async () => {
    await operator("evreg.delivery.failed", false);
    const gone = await operator("evreg.subscription.deactivated");
    await on.catalog.deleteSubscription(gone.rowid, NOW);
    await on.subscription(action);
    const events = await on.publish(action, 2);
    await finishAll("gone", 410);
    expect(await on.rowids()).toEqual(events.toReversed());
  });

  it("record once that a subscription is blocked, and by what", async () => {
    await operator("evreg.subscription.blocked");
    const settings = { ordered: true, retry_schedule: [0] } as const;
    const subscription = await on.subscription(action, { maxRetries: 1, settings });
    const [event] = await on.publish(action, 2);
    for (let attempt = 1; attempt <= 3; attempt += 1) {
      // What blocks is tried again after a second.
      const { claims } = await on.claim({ nowMs: LATER + 1_000, most: 1 });
      const claim = claims.find((one) => one.subscription.subscriptionId === subscription.rowid);
      await on.finish(claim!, "failed", { statusCode: 500 });
    }
    const [first] = await payloadsOf("evreg.subscription.blocked");
    expect(first).toEqual({
      delivery_id: expect.any(Number) as number,
      event_id: event,
      subscription_id: subscription.rowid,
      ...REPORTED,
      attempts: 2,
      last_error: "HTTP 500",
      published_at: "2026-03-01T12:00:00.000Z",
      blocked_at: "2026-03-01T12:01:01.000Z",
    });
    expect(await payloadsOf("evreg.subscription.blocked")).toHaveLength(1);
    const update = (maxRetries: number) => on.update(subscription.rowid, { maxRetries }, LATER + 1);
    await update(5);
    await update(4);
    expect(await payloadsOf("evreg.subscription.blocked")).toHaveLength(1);
    await update(2);
    await update(0);
    expect(await payloadsOf("evreg.subscription.blocked")).toMatchObject([{ attempts: 2 }, { attempts: 3 }]);
  });

  it("record many for many subscribers, each once and in order, together with other results", async () => {
    await operators("evreg.delivery.failed", 99);
    await on.subscription(action, NO_RETRIES);
    await on.publish(action, 10);
    const { claims } = await on.claim();
    const ok = claims[9];
    const results = claims.map((claim) =>
      claim === ok ? resultOf(claim, "delivered") : resultOf(claim, "failed", { statusCode: 500 }),
    );
    const outcomes = await on.queue.finish(results, LATER);
    const states = outcomes.map((outcome) => outcome.kind === "stored" && outcome.state);
    expect(states).toEqual([...Array.from({ length: 9 }, () => "failed"), "delivered"]);
    const payloads = (await payloadsOf("evreg.delivery.failed")) as { delivery_id: number }[];
    expect(payloads.map(({ delivery_id }) => delivery_id)).toEqual(
      claims.slice(0, 9).map(({ deliveryId }) => deliveryId),
    );
  });

  it("record that a subscription was deactivated, and why", async () => {
    await operator("evreg.subscription.deactivated");
    const subscription = await on.subscription(action);
    await on.publish(action, 2);
    await finishAll("gone", 410);
    expect(await payloadsOf("evreg.subscription.deactivated")).toEqual([
      {
        subscription_id: subscription.rowid,
        ...REPORTED,
        reason: "The handler answered 410 Gone.",
        deactivated_at: "2026-03-01T12:01:01.000Z",
      },
    ]);
    // A person who pauses it knows.
    await on.update(subscription.rowid, { active: true }, LATER);
    await on.update(subscription.rowid, { active: false }, LATER);
    expect(await payloadsOf("evreg.subscription.deactivated")).toHaveLength(1);
  });

  it("record how a replay ended: done, cancelled, failed, or with its subscription", async () => {
    await operator("evreg.replay.finished");
    const other = await on.action("user.deleted");
    await on.publish(action, 3);
    const ends: ((replay: number, subscription: number) => Promise<unknown>)[] = [
      async (replay) => {
        const step = { nowMs: LATER, maxQueued: 100, maxDue: 100, maxUnfinished: 100, total: 3 };
        while ((await on.replays.advance(replay, step)).state !== "ended");
      },
      (replay) => on.replays.cancel(replay, LATER),
      (_, subscription) => on.update(subscription, { action: other.action }, LATER),
      (_, subscription) => on.catalog.deleteSubscription(subscription, LATER),
    ];
    const replays: number[] = [];
    for (const [index, end] of ends.entries()) {
      const { rowid } = await on.subscription(action, { subscription: `${index}` });
      const plan = await on.replays.plan({ subscription: rowid, selection: "missed", fromMs: NOW - 1 });
      const replay = await on.replays.start(plan!, LATER);
      replays.push(replay!.rowid);
      await end(replay!.rowid, rowid);
      // Once each, however often it is asked for.
      if (index === 1) await on.replays.cancel(replay!.rowid, LATER);
    }
    const payloads = await payloadsOf("evreg.replay.finished");
    expect(payloads).toMatchObject([
      { replay_id: replays[0], status: "done", reason: null, total: 3, queued: 3, skipped: 0 },
      { replay_id: replays[1], status: "cancelled", reason: null, total: null, queued: 0 },
      { replay_id: replays[2], status: "failed", reason: expect.stringContaining("user.deleted") as string },
      { replay_id: replays[3], status: "cancelled", reason: "The subscription was deleted." },
    ]);
    expect(payloads[0]).toMatchObject({
      selection: "missed",
      action: "user.created",
      from: "2026-03-01T11:59:59.999Z",
      started_at: "2026-03-01T12:01:01.000Z",
      finished_at: "2026-03-01T12:01:01.000Z",
    });
  });

  it("do not lead to further ones", async () => {
    for (const name of SERVICE_EVENT_NAMES) await operator(name);
    await on.subscription(action);
    await on.publish(action);
    await finishAll("gone", 410);
    const before = await on.rowids();
    expect(before).toHaveLength(3);
    const { claims } = await on.claim({ nowMs: LATER });
    expect(claims.map(({ event }) => event.action)).toEqual([
      "evreg.delivery.failed",
      "evreg.subscription.deactivated",
    ]);
    const results = claims.map((claim) => resultOf(claim, "gone", { statusCode: 410 }));
    await on.queue.finish(results, LATER);
    for (const { subscription } of claims) {
      const { subscriptionId } = subscription;
      await on.update(subscriptionId, { active: true }, LATER);
      const plan = await on.replays.plan({ subscription: subscriptionId, selection: "all", fromMs: 0 });
      const replay = await on.replays.start(plan!, LATER);
      await on.replays.cancel(replay!.rowid, LATER);
    }
    expect(await on.rowids()).toEqual(before);
  });
}
