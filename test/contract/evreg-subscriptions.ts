import { beforeEach, describe, expect, it } from "vitest";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import type { NewEvent } from "../../src/domain/event.ts";
import type {
  NewSubscription,
  Subscription,
  SubscriptionUpdate,
  SubscriptionWithSecret,
} from "../../src/domain/subscription.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import {
  freshName,
  makeAny,
  newAction,
  newEvent,
  publish,
  refusal,
  subscribe,
  useEvreg,
  useSharedEvreg,
} from "./harness.ts";
import type { OpenEvreg } from "./harness.ts";

export function subscriptionsContract(open: OpenEvreg): void {
  describe("subscriptions", () => {
    const under = useSharedEvreg(open);
    let action: string;
    let other: string;

    beforeEach(async () => {
      action = freshName();
      other = `${action}.other`;
      await under.evreg.actions.create(newAction({ action }));
      await makeAny(under, other);
    });

    const bind = (input: Partial<NewSubscription> = {}): Promise<SubscriptionWithSecret> =>
      subscribe(under.evreg, { action, ...input });
    const send = async (): Promise<number> => (await publish(under.evreg, newEvent(undefined, action))).rowid;
    /** Of both actions. */
    const all = async (): Promise<Subscription[]> => {
      const { subscriptions } = under.evreg;
      const lists = [action, other].map((name) => subscriptions.list({ action: name }));
      return (await Promise.all(lists)).flatMap(({ data }) => data);
    };

    it("tests a handler only with what its subscription hears, and where an engine runs", async () => {
      const { evreg } = under;
      const { rowid } = await bind({ active: false });
      const test = (input: object, id = rowid) => evreg.subscriptions.test(id, input as NewEvent);
      const { payload } = newEvent();
      await refusal(test({ action, payload }, 999_999), "not_found");
      expect(await refusal(test({ action: other, payload }), "invalid")).toMatchObject({
        details: { field: "action" },
      });
      const bad = RawJson.fromText('{"email": 7}');
      expect(await refusal(test({ action, payload: bad }), "invalid")).toHaveProperty("details.errors");
      const writer = await under.as(["write"]);
      const unread = await refusal(writer.subscriptions.test(rowid, { action, payload: bad }), "invalid");
      expect(unread.details).toMatchObject({ field: "payload" });
      expect(unread.details).not.toHaveProperty("errors");
      const keyed = test({ action, payload, idempotency_key: "k" });
      expect(await refusal(keyed, "invalid")).toMatchObject({ details: { field: "idempotency_key" } });
      await refusal(
        test({ action, payload: RawJson.fromText(`{"a":"${"x".repeat(20_000)}"}`) }),
        "too_large",
      );
      await refusal(test({ action, payload }), "unavailable");
      const reader = await under.as(["read"]);
      await refusal(reader.subscriptions.test(rowid, { action, payload }), "forbidden");
    });

    it("are listed oldest first, any number of them", async () => {
      const ids: number[] = [];
      for (let number = 0; number < 51; number++) {
        ids.push((await bind({ subscription: `to${number}`, application: `app${number % 2}` })).rowid);
      }
      expect((await all()).map(({ rowid }) => rowid)).toEqual(ids);
      const { data } = await under.evreg.subscriptions.list({ action, application: "app1" });
      expect(data.map(({ rowid }) => rowid)).toEqual(ids.filter((_, index) => index % 2 === 1));
    });

    it("show their secret at creation and never again", async () => {
      const created = await bind();
      const { secret, ...record } = created;
      const { rowid } = record;
      expect(record).toEqual({
        rowid: expect.any(Number) as number,
        application: "billing",
        subscription: "invoices",
        action,
        mode: "push",
        handler: "https://hooks.example.com/evreg",
        max_retries: 5,
        active: true,
        disabled_reason: null,
        bearer: "secret",
        previous_secret_until: null,
        failing_since: null,
        slowed_until: null,
        blocked_by: null,
        last_claim_at: null,
        ...NO_SETTINGS,
        timestamped: "2026-01-01T00:00:00.000Z",
      });
      expect(secret).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
      expect(await under.evreg.subscriptions.get(rowid)).toEqual({ data: record });
      expect(await under.evreg.subscriptions.list({ action })).toEqual({ data: [record] });
      const update = await under.evreg.subscriptions.update(rowid, { max_retries: 5 });
      expect(update).toEqual({ data: record });
      expect(await under.evreg.subscriptions.delete(rowid)).toEqual({ data: record, meta: { cancelled: 0 } });
    });

    it("accept all their settings", async () => {
      const input = {
        application: " billing ",
        subscription: " Rechnungen (täglich) ",
        handler: "https://hooks.example.com:8443/a?b=c%20d",
        max_retries: 0,
        active: false,
      };
      expect(await bind(input)).toMatchObject({
        ...input,
        application: "billing",
        subscription: "Rechnungen (täglich)",
      });
      expect(await bind({ max_retries: 20 })).toMatchObject({ max_retries: 20 });
    });

    it("are unique by application, subscription and action", async () => {
      await bind();
      await refusal(bind({ handler: "https://other.example.com/" }), "conflict");
      await refusal(bind({ application: " billing " }), "conflict");
      await bind({ application: "shop" });
      await bind({ subscription: "other" });
      await bind({ action: other });
      expect(await all()).toHaveLength(4);
    });

    it("are changed only in what an update names", async () => {
      const { secret: _, ...before } = await bind();
      const steps: SubscriptionUpdate[] = [
        { handler: "https://new.example.com/" },
        { max_retries: 0 },
        { action: other },
        { action: other, max_retries: 3 },
        { active: false },
        { active: true, max_retries: 7 },
        {},
      ];
      const expected = { ...before };
      for (const step of steps) {
        Object.assign(expected, step);
        expect(await under.evreg.subscriptions.update(before.rowid, step)).toEqual({ data: expected });
        expect((await under.evreg.subscriptions.get(before.rowid)).data).toEqual(expected);
      }
    });

    it("are bound only to actions that exist, and to none twice", async () => {
      const { rowid } = await bind();
      await bind({ action: other });
      const update = (to: string): Promise<unknown> =>
        under.evreg.subscriptions.update(rowid, { action: to });
      await refusal(update(other), "conflict");
      for (const call of [() => update("unknown"), () => bind({ action: "unknown" })]) {
        await refusal(call(), "not_found", { field: "action", value: "unknown" });
      }
    });

    it("hold deliveries while they are paused, get no new ones, and continue where they were", async () => {
      const { rowid } = await bind();
      const states = async (): Promise<string[]> =>
        (await under.evreg.deliveries.list({ subscription: rowid })).data.map(
          ({ event_id, status }) => `${event_id} ${status}`,
        );
      const first = await send();
      expect(await states()).toEqual([`${first} pending`]);
      await under.evreg.subscriptions.update(rowid, { active: false });
      expect(await states()).toEqual([`${first} held`]);
      await send();
      expect(await states()).toEqual([`${first} held`]);
      await under.evreg.subscriptions.update(rowid, { active: true });
      const third = await send();
      expect(await states()).toEqual([`${third} pending`, `${first} pending`]);
    });

    it("leave their deliveries cancelled when they are deleted", async () => {
      const { rowid } = await bind();
      const first = await send();
      const { data, meta } = await under.evreg.subscriptions.delete(rowid);
      expect(data).toMatchObject({ rowid, subscription: "invoices" });
      expect(meta).toEqual({ cancelled: 1 });
      await refusal(under.evreg.subscriptions.get(rowid), "not_found");
      await refusal(under.evreg.subscriptions.delete(rowid), "not_found");
      expect(await all()).toEqual([]);
      expect((await under.evreg.deliveries.list({ action })).data).toMatchObject([
        { event_id: first, subscription_id: rowid, subscription: "invoices", status: "cancelled" },
      ]);
      await send();
      expect((await under.evreg.deliveries.list({ action })).data).toHaveLength(1);
    });
  });

  describe("listing subscriptions", () => {
    const under = useEvreg(open, (target) => makeAny(target, "user.created", "any"));

    it("has exact filters", async () => {
      await subscribe(under.evreg, { subscription: "one" });
      await subscribe(under.evreg, { subscription: "two", active: false });
      await subscribe(under.evreg, { application: "shop", action: "any" });
      const list = async (query: object): Promise<number[]> =>
        (await under.evreg.subscriptions.list(query)).data
          .map(({ rowid }) => rowid)
          .toSorted((a, b) => a - b);
      expect(await list({})).toEqual([1, 2, 3]);
      expect(await list({ application: "billing" })).toEqual([1, 2]);
      expect(await list({ application: "Billing" })).toEqual([]);
      expect(await list({ action: "any" })).toEqual([3]);
      expect(await list({ active: true })).toEqual([1, 3]);
      expect(await list({ active: false })).toEqual([2]);
      expect(await list({ application: "billing", action: "user.created", active: true })).toEqual([1]);
      expect(await list({ name: "billing/one" })).toEqual([1]);
      expect(await list({ name: "billing/two#user.created", active: false })).toEqual([2]);
      for (const name of ["billing", "one", "billing/one#any", "Billing/one"])
        expect(await list({ name })).toEqual([]);
      expect(
        (await (await under.as(["read:shop"])).subscriptions.list({ name: "billing/one" })).data,
      ).toEqual([]);
    });
  });
}
