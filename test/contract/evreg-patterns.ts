import { beforeEach, describe, expect, it } from "vitest";
import type { NewSubscription, SubscriptionWithSecret } from "../../src/domain/subscription.ts";
import {
  freshName,
  makeAny,
  newAction,
  newEvent,
  publish,
  refusal,
  subscribe,
  useSharedEvreg,
} from "./harness.ts";
import type { Claim } from "../../src/store/queue.ts";
import type { OpenEvreg } from "./harness.ts";
import { resultOf } from "./store/fixture.ts";

const FROM = "2026-01-01T00:00:00.000Z";
let runs = 0;

export function patternsContract(open: OpenEvreg): void {
  describe("patterns", () => {
    const under = useSharedEvreg(open);
    /** A name that no other test has anything beneath. */
    let root: string;
    let application: string;

    beforeEach(() => {
      runs += 1;
      root = `root${runs}`;
      application = `app${runs}`;
    });

    const make = (...names: string[]) => makeAny(under, ...names);
    const bind = (action: string, more: Partial<NewSubscription> = {}): Promise<SubscriptionWithSecret> =>
      subscribe(under.evreg, { application, action, ...more });
    /** The subscriptions of this test that got an event of the action published now. */
    const matching = async (action: string): Promise<readonly number[]> => {
      const { rowid } = await publish(under.evreg, newEvent({}, action));
      const { data } = await under.evreg.events.deliveries(rowid);
      return data.filter((one) => one.application === application).map((one) => one.subscription_id);
    };
    const listed = async (action: string): Promise<readonly number[]> =>
      (await under.evreg.subscriptions.list({ application, action })).data.map(({ rowid }) => rowid);

    it("match all that is beneath a name, and not the name itself", async () => {
      const beneath = [`${root}.created`, `${root}.item.added`];
      await make(root, ...beneath, `${root}x.created`);
      const { rowid, action } = await bind(`${root}.*`);
      expect(action).toBe(`${root}.*`);
      for (const name of beneath) expect(await matching(name)).toEqual([rowid]);
      for (const name of [root, `${root}x.created`]) expect(await matching(name)).toEqual([]);
      const item = await bind(`${root}.item.*`);
      expect(await matching(`${root}.item.added`)).toEqual([item.rowid, rowid]);
      await under.evreg.subscriptions.delete(rowid);
      expect(await matching(`${root}.item.added`)).toEqual([item.rowid]);
    });

    it("match what is made later", async () => {
      const all = await bind("*");
      const some = await bind(`${root}.a.*`);
      await make(`${root}.a.b`, `${root}.b`);
      expect(await matching(`${root}.a.b`)).toEqual([some.rowid, all.rowid]);
      expect(await matching(`${root}.b`)).toEqual([all.rowid]);
      for (const { rowid } of [all, some]) await under.evreg.subscriptions.delete(rowid);
    });

    it("match nothing that evreg says about itself, unless they name it", async () => {
      const all = await bind("*");
      const own = await bind("evreg.*");
      expect(await listed("evreg.delivery.failed")).toEqual([own.rowid]);
      await make(`${root}.a`);
      expect(await listed(`${root}.a`)).toEqual([all.rowid]);
      for (const { rowid } of [all, own]) await under.evreg.subscriptions.delete(rowid);
    });

    it("get one delivery of each event, also beside a subscription to its action", async () => {
      await make(`${root}.a`);
      const one = await bind(`${root}.a`);
      const some = await bind(`${root}.*`);
      expect(await matching(`${root}.a`)).toEqual([some.rowid, one.rowid]);
      await refusal(bind(`${root}.*`), "conflict");
    });

    it("are paused, and bound to another action or pattern, like any other", async () => {
      await make(`${root}.a`, `${root}.b.c`);
      const { rowid } = await bind(`${root}.*`);
      const { subscriptions } = under.evreg;
      await subscriptions.update(rowid, { active: false });
      expect(await matching(`${root}.a`)).toEqual([]);
      await subscriptions.update(rowid, { active: true, action: `${root}.b.*` });
      expect(await matching(`${root}.a`)).toEqual([]);
      expect(await matching(`${root}.b.c`)).toEqual([rowid]);
      await subscriptions.update(rowid, { action: `${root}.a` });
      expect(await matching(`${root}.a`)).toEqual([rowid]);
      expect(await matching(`${root}.b.c`)).toEqual([]);
      await subscriptions.update(rowid, { action: `${root}.*` });
      await make(`${root}.c`);
      for (const name of ["a", "b.c", "c"]) expect(await matching(`${root}.${name}`)).toEqual([rowid]);
    });

    it("filter listings of events, deliveries and subscriptions", async () => {
      await make(`${root}.a`, `${root}.b`, root);
      const { rowid } = await bind(`${root}.*`);
      const named = await bind(root);
      const ids: number[] = [];
      for (const name of [`${root}.a`, root, `${root}.b`]) {
        ids.push((await publish(under.evreg, newEvent({}, name))).rowid);
      }
      const [a, own, b] = ids;
      const { events, deliveries } = under.evreg;
      const found = await events.list({ action: `${root}.*` });
      expect(found.data.map((event) => event.rowid)).toEqual([b, a]);
      expect(found.meta.total).toBe(2);
      const sent = async (action: string) =>
        (await deliveries.list({ action })).data.map((one) => [one.event_id, one.subscription_id]);
      expect(await sent(`${root}.*`)).toEqual([
        [b, rowid],
        [a, rowid],
      ]);
      expect(await sent(`${root}.a`)).toEqual([[a, rowid]]);
      expect(await sent(root)).toEqual([[own, named.rowid]]);
      expect(await listed(`${root}.*`)).toEqual([rowid]);
      expect(await listed(`${root}.a`)).toEqual([rowid]);
      expect(await listed(root)).toEqual([named.rowid]);
    });

    it("keep the order of publication over all their actions", async () => {
      await make(`${root}.a`, `${root}.b`);
      const { rowid } = await bind(`${root}.*`, { ordered: true });
      const ids: number[] = [];
      for (const name of ["a", "b", "b", "a"]) {
        ids.push((await publish(under.evreg, newEvent({}, `${root}.${name}`))).rowid);
      }
      const events: number[] = [];
      for (let [claim] = await claimedBy(rowid); claim !== undefined; [claim] = await claimedBy(rowid)) {
        events.push(claim.event.eventId);
        await under.store.queue.finish([resultOf(claim, "delivered")], under.clock.now());
      }
      expect(events).toEqual(ids);
    });

    const claimedBy = async (subscription: number): Promise<readonly Claim[]> => {
      const { store, clock } = under;
      const { claims } = await store.queue.claim({
        nowMs: clock.now(),
        leaseMs: 1_000,
        tiers: [{ maxClaims: 10, isNewestFirst: false }],
        maxPayloadBytes: 1_000_000,
        quotas: [[subscription, { leased: 0, capacity: 10, tier: 0 }]],
        defaultQuota: { leased: 0, capacity: 0, tier: 0 },
      });
      return claims;
    };

    it("are replayed over all their actions, in the order of publication", async () => {
      await make(`${root}.a`, `${root}.b`, root);
      const ids: number[] = [];
      for (const name of [`${root}.a`, `${root}.b`, root, `${root}.a`]) {
        ids.push((await publish(under.evreg, newEvent({}, name))).rowid);
      }
      const { rowid } = await bind(`${root}.*`);
      const { replays } = under.evreg;
      await under.clock.advance(60_000);
      const input = { from: FROM, status: "missed" } as const;
      expect((await replays.count(rowid, input)).data).toMatchObject({ action: `${root}.*`, total: 3 });
      const { data } = await replays.start(rowid, input);
      expect(data).toMatchObject({ action: `${root}.*`, status: "running" });
      const step = { nowMs: under.clock.now(), maxQueued: 10, maxDue: 100, maxUnfinished: 100 };
      await under.store.replays.advance(data.rowid, step);
      expect((await claimedBy(rowid)).map(({ event }) => event.eventId)).toEqual([ids[0], ids[1], ids[3]]);
      for (const status of ["all", "failed"] as const) {
        expect((await replays.count(rowid, { from: FROM, status })).data.total).toBe(0);
      }
    });

    it("are refused in any other form", async () => {
      for (const action of ["", ".*", "a.*.b", "*.a", "a*", "**", "a.**", "a..*", `${"a".repeat(127)}.*`]) {
        await refusal(bind(action), "invalid", { field: "action" });
      }
      await bind(`${"a".repeat(126)}.*`);
      await refusal(under.evreg.actions.create(newAction({ action: "a.*" })), "invalid");
      await refusal(publish(under.evreg, newEvent({}, `${root}.*`)), "not_found");
    });

    it("take the right to read, or to write, for all applications", async () => {
      await make(`${root}.a`);
      const { rowid } = await bind(`${root}.a`);
      for (const scopes of [
        ["write:crm", `write:${application}`, "read:crm"],
        [`admin:${application}`],
        [`write:${application}`, "publish"],
      ] as const) {
        const limited = await under.as(scopes);
        for (const action of [`${root}.*`, "*", "evreg.*"]) {
          const error = await refusal(
            subscribe(limited, { application, action, subscription: "s" }),
            "forbidden",
          );
          expect(error.message).toContain(`The action ${action} needs the scope read`);
          await refusal(limited.subscriptions.update(rowid, { action }), "forbidden");
        }
      }
      for (const [index, scopes] of [
        ["read", `write:${application}`] as const,
        ["write"] as const,
      ].entries()) {
        const wide = await under.as(scopes);
        const { action } = await subscribe(wide, {
          application,
          action: `${root}.*`,
          subscription: `s${index}`,
        });
        expect(action).toBe(`${root}.*`);
      }
    });
  });

  describe("subscriptions of one name", () => {
    const under = useSharedEvreg(open);
    let application: string;
    let actions: readonly string[];

    beforeEach(async () => {
      runs += 1;
      application = `app${runs}`;
      actions = [freshName(), freshName(), freshName()];
      await makeAny(under, ...actions);
    });

    it("share one secret, also one made while it is being rotated", async () => {
      const [one, two, three] = actions;
      const first = await subscribe(under.evreg, { application, action: one! });
      const second = await subscribe(under.evreg, { application, action: two! });
      const other = await subscribe(under.evreg, { application, action: two!, subscription: "other" });
      expect(second.secret).toBe(first.secret);
      expect(other.secret).not.toBe(first.secret);
      const { data, meta } = await under.evreg.subscriptions.rotateSecret(second.rowid);
      expect(meta).toEqual({ rotated: 2 });
      expect(data.secret).not.toBe(first.secret);
      const third = await subscribe(under.evreg, { application, action: three! });
      expect(third.secret).toBe(data.secret);
      for (const { rowid } of [first, second, third]) {
        const found = (await under.evreg.subscriptions.get(rowid)).data;
        expect(found.previous_secret_until).toBe(data.previous_secret_until);
      }
      await refusal(under.evreg.subscriptions.rotateSecret(first.rowid), "conflict");
      const last = await under.evreg.subscriptions.rotateSecret(first.rowid, { overlap_ms: 0 });
      expect(last.meta).toEqual({ rotated: 3 });
      const untouched = await under.evreg.subscriptions.rotateSecret(other.rowid);
      expect(untouched.meta).toEqual({ rotated: 1 });
    });

    it("have a new secret once all of them were deleted", async () => {
      const first = await subscribe(under.evreg, { application, action: actions[0]! });
      await under.evreg.subscriptions.delete(first.rowid);
      const again = await subscribe(under.evreg, { application, action: actions[0]! });
      expect(again.secret).not.toBe(first.secret);
      expect(again.rowid).toBeGreaterThan(first.rowid);
    });
  });
}
