import { describe, expect, it } from "vitest";
import type { StatsQuery } from "../../src/domain/stats/stats.ts";
import type { NewSubscription } from "../../src/domain/subscription.ts";
import type { AttemptResult } from "../../src/store/queue.ts";
import { MAX_MISSED } from "../../src/store/sql/queue/attention.ts";
import {
  claimDue,
  endDue,
  finishNow,
  makeAny,
  newAction,
  newEvent,
  newSubscription,
  publish,
  subscribe,
  useEvreg,
  type OpenEvreg,
} from "./harness.ts";

const NOW = "2026-01-01T00:00:00.000Z";

export function attentionContract(open: OpenEvreg): void {
  describe("what needs a person", () => {
    const under = useEvreg(open, (target) => makeAny(target, "a"));

    const one = async (subscription: string, more: Partial<NewSubscription> = {}): Promise<number> =>
      (await subscribe(under.evreg, { subscription, action: "a", ...more })).rowid;

    const event = () => publish(under.evreg, newEvent({}, "a"));

    const fail = (more: Partial<AttemptResult> = {}) => endDue(under, "failed", { statusCode: 500, ...more });
    const attention = async () => (await under.evreg.attention()).data;

    const entries = async () =>
      (await attention()).map((entry) => [entry.reason, entry.subscription, entry.until]);

    const nothing = {
      until: null,
      published_from: null,
      deliveries: null,
      at_least: false,
      delivery_id: null,
      missed: null,
      error: null,
    };

    it("is nothing where all is well, and where a pause keeps nothing back", async () => {
      await one("fine");
      await one("paused", { active: false });
      expect(await under.evreg.attention()).toEqual({
        data: [],
        meta: { total: 0, subscriptions: 0 },
      });
    });

    it("is all that are paused, of which it is counted for so many what they have missed", async () => {
      for (let at = 0; at <= MAX_MISSED; at += 1) await one(`paused ${at}`, { active: false });
      await event();
      const { data } = await under.evreg.attention({ limit: 500 });
      expect(data.map(({ missed }) => missed)).toEqual([...Array<number>(MAX_MISSED).fill(1), null]);
    });

    it("is a subscription that evreg deactivated, with what is held and was missed", async () => {
      const id = await one("gone");
      await event();
      await under.clock.advance(1_000);
      const at = "2026-01-01T00:00:01.000Z";
      await endDue(under, "gone", { statusCode: 410 });
      await under.clock.advance(1_000);
      await event();
      const { data, meta } = await under.evreg.attention();
      expect(data[0]).toEqual({
        ...nothing,
        reason: "deactivated",
        subscription_id: id,
        application: "billing",
        subscription: "gone",
        action: "a",
        since: at,
        deliveries: 0,
        missed: 1,
        error: "The handler answered 410 Gone.",
        found: `billing/gone was deactivated at ${at}; no delivery is held; 1 event missed; The handler answered 410 Gone.`,
      });
      expect(data[1]).toMatchObject({
        reason: "failed",
        deliveries: 1,
        delivery_id: 1,
        since: at,
        published_from: NOW,
      });
      expect([meta.total, meta.subscriptions]).toEqual([2, 1]);
      await under.evreg.subscriptions.update(id, { max_retries: 1 });
      expect((await attention())[0]).toMatchObject({ reason: "deactivated", since: at });
      await under.evreg.subscriptions.update(id, { active: false });
      expect(await attention()).toMatchObject([{ reason: "failed" }, { reason: "paused", missed: 1 }]);
    });

    it("is one that a delivery blocks, with how many wait behind it", async () => {
      const id = await one("ordered", { ordered: true, max_retries: 0 });
      for (let n = 0; n < 4; n += 1) await event();
      await fail({ retryAfterMs: 9_000 });
      expect(await attention()).toEqual([
        expect.objectContaining({
          reason: "blocked",
          subscription_id: id,
          since: NOW,
          deliveries: 3,
          delivery_id: 1,
          error: "HTTP 500",
          found: `billing/ordered is blocked by delivery 1 and fails since ${NOW}; 3 deliveries wait behind it; HTTP 500.`,
        }),
      ]);
    });

    it("is one that fails, and what failed for good within a day", async () => {
      const failing = await one("failing");
      const failed = await one("failed", { max_retries: 0 });
      await event();
      await fail({ retryAfterMs: 60_000 });
      const reasons = async () => (await attention()).map((entry) => [entry.reason, entry.subscription_id]);
      expect(await reasons()).toEqual([
        ["failing", failing],
        ["failing", failed],
        ["failed", failed],
      ]);
      expect((await attention())[0]).toMatchObject({
        since: NOW,
        deliveries: 1,
        error: "HTTP 500",
        found: `billing/failing fails since ${NOW}; 1 delivery waits; HTTP 500.`,
      });
      await under.clock.advance(86_400_001);
      expect(await reasons()).toEqual([
        ["failing", failing],
        ["failing", failed],
      ]);
    });

    it("has the gravest first, and what is slowed behind what fails", async () => {
      await one("slowed");
      await event();
      await event();
      const slowUntilMs = under.clock.now() + 60_000;
      const [first, second] = await claimDue(under);
      await finishNow(under, first!, "failed", { statusCode: 500, slowUntilMs });
      await finishNow(under, second!, "delivered", { statusCode: 200 });
      const slowed = ["slowed", "slowed", "2026-01-01T00:01:00.000Z"];
      expect(await entries()).toEqual([slowed]);
      for (const action of ["earlier", "later"]) {
        await makeAny(under, action);
        await one(action, { action, ...(action === "later" ? { ordered: true, max_retries: 0 } : {}) });
        await publish(under.evreg, newEvent({}, action));
        await under.clock.advance(1_000);
        await fail({ retryAfterMs: 60_000 });
      }
      expect(await entries()).toEqual([["blocked", "later", null], ["failing", "earlier", null], slowed]);
      await under.clock.advance(58_000);
      expect(await entries()).toHaveLength(2);
    });

    it("is a pull subscription from which nobody claims what is due", async () => {
      const id = await one("pulled", { mode: "pull", handler: null });
      await event();
      await event();
      await under.clock.advance(299_999);
      expect(await attention()).toEqual([]);
      await under.clock.advance(1);
      expect(await attention()).toEqual([
        expect.objectContaining({
          reason: "unclaimed",
          subscription_id: id,
          since: NOW,
          deliveries: 2,
          found: `billing/pulled is a pull subscription from which nobody claims since ${NOW}; 2 deliveries wait; start a consumer, or delete it.`,
        }),
      ]);
      const { data: taken } = await under.evreg.subscriptions.claim(id, { max: 1, lease_ms: 600_000 });
      await under.clock.advance(300_000);
      expect(await attention()).toEqual([]);
      // A consumer that fails is graver than none.
      const results = [{ lease: taken[0]!.lease, outcome: "failed" }] as const;
      await under.evreg.subscriptions.finish(id, { results });
      await under.clock.advance(300_000);
      expect(await attention()).toMatchObject([{ reason: "failing" }]);
    });

    it("is not a pull subscription that was made for a while, once nobody claims from it any more", async () => {
      const made = { mode: "pull", handler: null, expires_after_ms: 86_400_000 } as const;
      const id = await one("listen", made);
      await event();
      const { lease } = (await under.evreg.subscriptions.claim(id)).data[0]!;
      await under.evreg.subscriptions.finish(id, { results: [{ lease, outcome: "failed" }] });
      expect(await attention()).toMatchObject([{ reason: "failing" }]);
      await under.clock.advance(120_000);
      expect(await attention()).toEqual([]);
      await under.clock.advance(300_000);
      expect(await attention()).toEqual([]);
    });

    it("is a pause that holds deliveries or misses events, since when", async () => {
      const id = await one("paused");
      const missing = await one("missing", { active: false });
      await event();
      await under.clock.advance(1_000);
      await under.evreg.subscriptions.update(id, { active: false });
      await under.evreg.subscriptions.update(id, { max_retries: 3 });
      await under.clock.advance(1_000);
      await event();
      const { data } = await under.evreg.attention();
      expect(data).toMatchObject([
        { reason: "paused", subscription_id: missing, since: NOW, deliveries: 0, missed: 2 },
        {
          reason: "paused",
          subscription_id: id,
          since: "2026-01-01T00:00:01.000Z",
          deliveries: 1,
          missed: 1,
          found:
            "billing/paused is paused since 2026-01-01T00:00:01.000Z; 1 delivery is held; 1 event missed.",
        },
      ]);
    });

    it("is what the caller may read, of one application if it asks, and the gravest where it is cut", async () => {
      await one("mine");
      await one("theirs", { application: "shop" });
      await event();
      await fail({ retryAfterMs: 60_000 });
      const seen = async (evreg = under.evreg, query = {}) =>
        (await evreg.attention(query)).data.map(({ subscription }) => subscription);
      expect(await seen()).toEqual(["mine", "theirs"]);
      expect(await seen(under.evreg, { application: "shop" })).toEqual(["theirs"]);
      const reader = await under.as(["read:billing"]);
      expect(await seen(reader)).toEqual(["mine"]);
      expect(await seen(reader, { application: "shop" })).toEqual([]);
      const { data, meta } = await under.evreg.attention({ limit: 1 });
      expect([data.length, meta.total]).toEqual([1, 2]);
    });
  });

  describe("figures over time", () => {
    const under = useEvreg(open);
    const stats = async (query?: StatsQuery) => (await under.evreg.stats(query)).data;

    const publishMany = async (count: number): Promise<void> => {
      for (let done = 0; done < count; done += 1) await publish(under.evreg);
    };

    it("are columns with a value for each step up to now, and totals", async () => {
      await under.evreg.actions.create(newAction());
      await publishMany(3);
      await under.clock.advance(10_000);
      await publishMany(2);
      const found = await stats();
      expect(found).toMatchObject({ range: "1h", to: "2026-01-01T00:00:10.000Z", step_ms: 10_000 });
      expect(found.from).toBe("2025-12-31T23:00:20.000Z");
      const { series, totals } = found;
      for (const column of Object.values(series)) expect(column).toHaveLength(360);
      expect(series.published.slice(-3)).toEqual([0, 3, 2]);
      expect(totals).toMatchObject({ published: 5, delivered: 0, latency_ms: { p50: null } });
    });

    it("have steps of a second, ten seconds, five minutes or an hour", async () => {
      const spans = { "5m": [30, 10], "1h": [360, 10], "24h": [288, 300], "7d": [168, 3_600] } as const;
      for (const range of ["5m", "1h", "24h", "7d"] as const) {
        const { series, step_ms } = await stats({ range });
        expect([series.published.length, step_ms / 1_000]).toEqual(spans[range]);
      }
    });

    it("count the items of batches that are stored, each for its action", async () => {
      await under.evreg.actions.create(newAction());
      await under.evreg.actions.create(newAction({ action: "user.deleted" }));
      const { email } = newEvent().payload.value() as { email: string };
      const items = [newEvent(), newEvent({}), newEvent({ email }, "user.deleted"), newEvent({}, "no.such")];
      await under.evreg.events.publishBatch(items);
      expect((await stats()).totals.published).toBe(2);
      expect((await stats({ action: "user.created" })).totals.published).toBe(1);
      expect((await stats({ action: "user.*" })).totals.published).toBe(2);
      expect((await stats({ action: "no.such" })).totals.published).toBe(0);
    });

    it("tell what is unfinished now, by cause and since when", async () => {
      await under.evreg.actions.create(newAction());
      const { rowid } = await subscribe(under.evreg);
      await publishMany(2);
      await under.clock.advance(5_000);
      const { backlog } = await stats();
      expect(backlog).toMatchObject({ is_whole: true, due: { deliveries: 2, since: NOW } });
      expect(backlog.blocked).toEqual({ deliveries: 0, since: null });
      expect((await stats({ subscription: rowid })).backlog.due.deliveries).toBe(2);
      expect((await stats({ subscription: rowid + 1 })).backlog.due.deliveries).toBe(0);
      expect((await stats({ action: "user.*" })).backlog.due.deliveries).toBe(2);
      expect((await stats({ action: "no.such" })).backlog.due.deliveries).toBe(0);
    });

    it("show a token that is limited to applications theirs alone", async () => {
      await under.evreg.actions.create(newAction());
      await under.evreg.actions.create(newAction({ action: "bill.sent", application: "billing" }));
      await under.evreg.subscriptions.create(newSubscription({ application: "billing" }));
      await publishMany(3);
      const billing = await under.as(["read:billing"]);
      const { totals, backlog } = (await billing.stats()).data;
      expect([totals.published, backlog.due.deliveries]).toEqual([0, 3]);
      const crm = await under.as(["read:crm"]);
      const seen = (await crm.stats()).data;
      expect([seen.totals.published, seen.backlog.due.deliveries]).toEqual([3, 0]);
      expect((await crm.stats({ application: "billing" })).data.backlog.due.deliveries).toBe(0);
      expect((await billing.stats({ action: "user.created" })).data.totals.published).toBe(0);
    });
  });
}
