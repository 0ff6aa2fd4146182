import { describe, expect, it } from "vitest";
import type { StatsQuery } from "../../src/domain/stats/stats.ts";
import { newAction, newEvent, newSubscription, publish, refusal, subscribe, useEvreg } from "./harness.ts";
import type { OpenEvreg } from "./harness.ts";

const START = "2026-01-01T00:00:00.000Z";

export function statsContract(open: OpenEvreg): void {
  describe("figures over time", () => {
    const under = useEvreg(open);
    const stats = async (query?: StatsQuery) => (await under.evreg.stats(query)).data;

    const publishMany = async (count: number): Promise<void> => {
      for (let done = 0; done < count; done += 1) await publish(under.evreg);
    };

    it("are columns with a value for each step up to now, and totals", async () => {
      await under.evreg.actions.create(newAction());
      await publishMany(3);
      await refusal(under.evreg.events.publish(newEvent({ email: 1 })), "invalid");
      await under.clock.advance(10_000);
      await publishMany(2);
      const found = await stats();
      expect(found).toMatchObject({ range: "1h", to: "2026-01-01T00:00:10.000Z", step_ms: 10_000 });
      expect(found.from).toBe("2025-12-31T23:00:20.000Z");
      const { series, totals } = found;
      for (const column of Object.values(series)) expect(column).toHaveLength(360);
      expect(series.published.slice(-3)).toEqual([null, 3, 2]);
      expect(series.refused.slice(-3)).toEqual([null, 1, 0]);
      expect(series.latency_p50_ms.slice(-2)).toEqual([null, null]);
      expect(totals).toMatchObject({ published: 5, refused: 1, delivered: 0, latency_ms: { p50: null } });
    });

    it("have steps of a second, ten seconds, five minutes or an hour", async () => {
      const spans = { "5m": [30, 10], "1h": [360, 10], "24h": [288, 300], "7d": [168, 3_600] } as const;
      for (const range of ["5m", "1h", "24h", "7d"] as const) {
        const { series, step_ms } = await stats({ range });
        expect([series.published.length, step_ms / 1_000]).toEqual(spans[range]);
      }
    });

    it("count the items of batches, each for its action", async () => {
      await under.evreg.actions.create(newAction());
      await under.evreg.actions.create(newAction({ action: "user.deleted" }));
      const items = [newEvent(), newEvent({}), newEvent({}, "user.deleted"), newEvent({}, "no.such")];
      await under.evreg.events.publishBatch(items);
      expect((await stats()).totals).toMatchObject({ published: 1, refused: 3 });
      expect((await stats({ action: "user.created" })).totals).toMatchObject({ published: 1, refused: 1 });
      expect((await stats({ action: "user.*" })).totals).toMatchObject({ published: 1, refused: 2 });
      expect((await stats({ action: "no.such" })).totals).toMatchObject({ published: 0, refused: 0 });
    });

    it("tell what is unfinished now, by cause and since when", async () => {
      await under.evreg.actions.create(newAction());
      const { rowid } = await subscribe(under.evreg);
      await publishMany(2);
      await under.clock.advance(5_000);
      const { backlog } = await stats();
      expect(backlog).toMatchObject({ is_whole: true, due: { deliveries: 2, since: START } });
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
      await under.evreg.events.publish(newEvent({}, "no.such")).catch(() => undefined);
      const billing = await under.as(["read:billing"]);
      const { totals, backlog } = (await billing.stats()).data;
      expect([totals.published, totals.refused, backlog.due.deliveries]).toEqual([0, 0, 3]);
      const crm = await under.as(["read:crm"]);
      const seen = (await crm.stats()).data;
      expect([seen.totals.published, seen.totals.refused, seen.backlog.due.deliveries]).toEqual([3, 0, 0]);
      expect((await crm.stats({ application: "billing" })).data.backlog.due.deliveries).toBe(0);
      expect((await billing.stats({ action: "user.created" })).data.totals.published).toBe(0);
    });
  });
}
