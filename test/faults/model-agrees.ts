import { expect } from "vitest";
import { DELIVERY_STATUSES } from "../../src/model/delivery.ts";
import { toIso } from "../../src/runtime/clock.ts";
import type { LocalService } from "../support/local-service.ts";
import { type Model, type ModelDelivery, type ModelSubscription, statusOf } from "./model.ts";

const LIMIT = 500;

/** Holds what evreg lists to the model: every event, subscription and delivery, and one of the filters in turn. */
export async function agree(model: Model, { evreg }: LocalService, turn: number): Promise<void> {
  const status = DELIVERY_STATUSES[turn % DELIVERY_STATUSES.length]!;
  await Promise.all([
    ...model.actions.map(async (action) => {
      const { data, meta } = await evreg.events.list({ action: action.name, limit: LIMIT });
      const expected = model.events.filter((event) => event.action === action).toReversed();
      expect(data.map(({ rowid, revision, payload }) => [rowid, revision, payload.text()])).toEqual(
        expected.map(({ rowid, revision, text }) => [rowid, revision, text]),
      );
      expect(meta.total).toBe(expected.length);
    }),
    ...model.subscriptions.map(async (subscription) => {
      const { data } = await evreg.deliveries.list({ subscription: subscription.rowid, limit: LIMIT });
      const expected = deliveriesOf(model, subscription);
      expect(
        data.map((one) => [one.event_id, one.status, one.attempt, one.next_attempt_at, one.last_error]),
      ).toEqual(expected.map(lineOf));
    }),
    ...model.living.map(async (subscription) => {
      const { data } = await evreg.subscriptions.get(subscription.rowid);
      const { handler, active, maxRetries: max_retries, disabledReason: disabled_reason } = subscription;
      expect(data).toMatchObject({ handler, active, max_retries, disabled_reason });
      const [blocker] = model.blockers(subscription);
      if (blocker === undefined) return expect(data.blocked_by).toBeNull();
      const { data: blocking } = await evreg.deliveries.get(data.blocked_by ?? 0);
      expect([blocking.event_id, blocking.subscription_id]).toEqual([
        blocker.event.rowid,
        subscription.rowid,
      ]);
    }),
    ...model.subscriptions.slice(-1).map(async (subscription) => {
      const query = { subscription: subscription.rowid, status, limit: LIMIT };
      const { data } = await evreg.deliveries.list(query);
      const expected = deliveriesOf(model, subscription).filter((one) => statusOf(one) === status);
      expect(data.map(({ event_id }) => event_id)).toEqual(expected.map(({ event }) => event.rowid));
    }),
  ]);
}

/** The whole history of each delivery. */
export async function agreeOnAttempts(model: Model, { evreg }: LocalService): Promise<void> {
  await Promise.all(
    model.deliveries.map(async ({ event, subscription, outcomes }) => {
      const { data } = await evreg.events.deliveries(event.rowid);
      const found = data.find(({ subscription_id }) => subscription_id === subscription.rowid);
      const { attempts } = (await evreg.deliveries.get(found?.rowid ?? 0)).data;
      expect(attempts.map(({ attempt, outcome }) => [attempt, outcome])).toEqual(
        outcomes.map((outcome, index) => [index + 1, outcome]),
      );
    }),
  );
}

function deliveriesOf(model: Model, subscription: ModelSubscription): ModelDelivery[] {
  return model.deliveries.filter((delivery) => delivery.subscription === subscription).toReversed();
}

function lineOf(delivery: ModelDelivery): unknown[] {
  const { event, outcomes, lease, dueMs, isBehind, lastError } = delivery;
  const status = statusOf(delivery);
  const isPlanned = status === "pending" || status === "waiting";
  const attempt = outcomes.length + (lease === undefined ? 0 : 1);
  return [event.rowid, status, attempt, isPlanned && !isBehind ? toIso(dueMs) : null, lastError];
}
