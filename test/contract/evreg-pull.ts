import { beforeEach, describe, expect, it } from "vitest";
import type { NewSubscription, SubscriptionUpdate } from "../../src/domain/subscription.ts";
import { claimRequest } from "../support/claim-request.ts";
import { ANY_OBJECT, newAction, newEvent, publish, refusal, subscribe, useEvreg } from "./harness.ts";
import type { OpenEvreg } from "./harness.ts";

export const PULL: NewSubscription = {
  application: "billing",
  subscription: "invoices",
  action: "user.created",
  mode: "pull",
};

/** Subscriptions whose deliveries consumers claim. */
export function pullContract(open: OpenEvreg): void {
  describe("pull subscriptions", () => {
    const under = useEvreg(open);

    beforeEach(() => under.evreg.actions.create(newAction({ schemata: ANY_OBJECT })));

    it("have no handler, and keep their mode", async () => {
      const { subscriptions } = under.evreg;
      const { data } = await subscriptions.create({ ...PULL, headers: { "X-Team": "a" }, ordered: true });
      expect(data).toMatchObject({ mode: "pull", handler: null, last_claim_at: null, ordered: true });
      const { secret: _, ...record } = data;
      expect((await subscriptions.list()).data).toEqual([record]);
      expect((await subscriptions.update(data.rowid, { mode: "pull", handler: null })).data).toEqual(record);
      const error = await refusal(subscriptions.update(data.rowid, { mode: "push" }), "invalid");
      expect(error.details).toMatchObject({ field: "mode", value: "push" });
    });

    it.each<[Partial<NewSubscription>, string]>([
      [{ mode: "push" }, "handler"],
      [{ mode: "push", handler: null }, "handler"],
      [{ mode: "poll" as "pull" }, "mode"],
      [{ handler: "https://hooks.example.com/" }, "handler"],
      [{ rate_limit: 1 }, "rate_limit"],
      [{ max_in_flight: 1 }, "max_in_flight"],
      [{ timeout_ms: 1_000 }, "timeout_ms"],
    ])("are refused with %j", async (given, field) => {
      const error = await refusal(under.evreg.subscriptions.create({ ...PULL, ...given }), "invalid");
      expect(error.details).toMatchObject({ field });
    });

    it.each<[SubscriptionUpdate, string]>([
      [{ handler: "https://hooks.example.com/" }, "handler"],
      [{ rate_limit: 1 }, "rate_limit"],
    ])("are not changed to have %j", async (change, field) => {
      const { data } = await under.evreg.subscriptions.create(PULL);
      const error = await refusal(under.evreg.subscriptions.update(data.rowid, change), "invalid");
      expect(error.details).toMatchObject({ field });
    });

    it("are the only ones without a handler", async () => {
      const { rowid } = await subscribe(under.evreg);
      const error = await refusal(under.evreg.subscriptions.update(rowid, { handler: null }), "invalid");
      expect(error.details).toMatchObject({ field: "handler" });
    });

    it("keep their deliveries from the engine", async () => {
      const { data } = await under.evreg.subscriptions.create(PULL);
      await publish(under.evreg, newEvent({}));
      const { claims, nextDueAtMs } = await under.store.queue.claim(
        claimRequest({ nowMs: under.clock.now() + 60_000 }),
      );
      expect([claims, nextDueAtMs]).toEqual([[], undefined]);
      expect((await under.evreg.deliveries.list({ subscription: data.rowid })).data).toMatchObject([
        { status: "pending", attempt: 0 },
      ]);
    });
  });
}
