import { beforeEach, expect, it } from "vitest";
import type { Action } from "../../../src/domain/action.ts";
import { SERVICE_EVENT_NAMES, SERVICE_EVENT_SCHEMAS } from "../../../src/domain/service-events.ts";
import type { Subscription } from "../../../src/domain/subscription.ts";
import { compileSchema } from "../../../src/schema/validate/compile.ts";
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
const iso = (ms: number): string => new Date(ms).toISOString();

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

  it("record of what happens at once that to which somebody has an active subscription", async () => {
    await operator("evreg.delivery.failed", false);
    const reported = await operator("evreg.subscription.deactivated");
    const { rowid } = await on.subscription(action, NO_RETRIES);
    await on.publish(action);
    await on.endAll("gone", { statusCode: 410 });
    expect(await payloadsOf("evreg.subscription.deactivated")).toHaveLength(1);
    await on.catalog.deleteSubscription(reported.rowid, NOW);
    await on.update(rowid, { active: true });
    await on.publish(action);
    await on.endAll("gone", { statusCode: 410 });
    expect(await on.rowids()).toHaveLength(3);
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

  it("record what was deactivated and why, and what blocks", async () => {
    for (const name of SERVICE_EVENT_NAMES) await operator(name);
    const { rowid: subscription_id } = await on.subscription(action, {
      maxRetries: 0,
      settings: { ordered: true },
    });
    const [event_id] = await on.publish(action);
    const [claim] = await on.endAll("gone", { statusCode: 410 });
    const reported = { subscription_id, ...REPORTED };
    const deactivated = { reason: "The handler answered 410 Gone.", deactivated_at: iso(LATER) };
    expect(await payloadsOf("evreg.subscription.deactivated")).toEqual([{ ...reported, ...deactivated }]);
    const blocked = { delivery_id: claim!.deliveryId, event_id, attempts: 1, last_error: "HTTP 410" };
    expect(await payloadsOf("evreg.subscription.blocked")).toEqual([
      { ...reported, ...blocked, published_at: iso(NOW), blocked_at: iso(LATER) },
    ]);
  });

  it("do not lead to further ones", async () => {
    for (const name of SERVICE_EVENT_NAMES) await operator(name);
    await on.subscription(action);
    await on.publish(action);
    await on.endAll("gone", { statusCode: 410 });
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
      await on.update(subscription.subscriptionId, { active: true }, LATER);
    }
    expect(await on.rowids()).toEqual(before);
  });
}
