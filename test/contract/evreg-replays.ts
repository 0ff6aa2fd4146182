import { describe, expect, it } from "vitest";
import type { ReplayQuery } from "../../src/domain/replay.ts";
import { makeAny, newEvent, publish, refusal, subscribe, useEvreg } from "./harness.ts";
import type { EvregUnderTest, OpenEvreg } from "./harness.ts";

const FROM = "2026-01-01T00:00:00.000Z";

/** Two events that the subscription missed. */
async function prepare(under: EvregUnderTest): Promise<void> {
  const { evreg, clock } = under;
  await makeAny(under, "user.created");
  for (let n = 0; n < 2; n += 1) {
    await publish(evreg, newEvent({}));
    await clock.advance(60_000);
  }
  await subscribe(evreg);
}

export function replaysContract(open: OpenEvreg): void {
  describe("replays", () => {
    const under = useEvreg(open, prepare);

    it("can be counted without being started", async () => {
      const { data } = await under.evreg.replays.count(1, { from: FROM, status: "missed" });
      expect(data).toEqual({
        subscription_id: 1,
        application: "billing",
        subscription: "invoices",
        action: "user.created",
        selection: "missed",
        from: FROM,
        to: "2026-01-01T00:02:00.000Z",
        total: 2,
      });
      const from = "2026-01-01T01:00:30+01:00";
      expect((await under.evreg.replays.count(1, { from, status: "missed" })).data).toMatchObject({
        from: "2026-01-01T00:00:30.000Z",
        total: 1,
      });
      const to = "2026-01-01T00:01:00Z";
      expect((await under.evreg.replays.count(1, { from: FROM, to, status: "all" })).data.total).toBe(1);
      expect((await under.evreg.replays.count(1, { from: FROM, status: "failed" })).data.total).toBe(0);
      expect((await under.evreg.replays.list()).data).toEqual([]);
    });

    it("can be started, read, listed and cancelled", async () => {
      const { data: started } = await under.evreg.replays.start(1, { from: FROM, status: "missed" });
      expect(started).toEqual({
        rowid: 1,
        subscription_id: 1,
        application: "billing",
        subscription: "invoices",
        action: "user.created",
        selection: "missed",
        from: FROM,
        to: "2026-01-01T00:02:00.000Z",
        status: "running",
        reason: null,
        total: null,
        queued: 0,
        skipped: 0,
        timestamped: "2026-01-01T00:02:00.000Z",
        finished_at: null,
      });
      expect((await under.evreg.replays.get(1)).data).toEqual(started);
      const listed = async (query: ReplayQuery): Promise<number[]> =>
        (await under.evreg.replays.list(query)).data.map(({ rowid }) => rowid);
      expect(await listed({})).toEqual([1]);
      expect(await listed({ subscription: 1, status: "running", limit: 1 })).toEqual([1]);
      expect(await listed({ subscription: 2 })).toEqual([]);
      expect(await listed({ after: 1 })).toEqual([]);
      const second = await refusal(
        under.evreg.replays.start(1, { from: FROM, status: "failed" }),
        "conflict",
      );
      expect(second.details).toMatchObject({ rowid: 1 });
      const { data: cancelled } = await under.evreg.replays.cancel(1);
      expect(cancelled).toMatchObject({ status: "cancelled", finished_at: "2026-01-01T00:02:00.000Z" });
      expect((await under.evreg.replays.cancel(1)).data).toEqual(cancelled);
      expect((await under.evreg.replays.start(1, { from: FROM, status: "failed" })).data.rowid).toBe(2);
    });

    it("run beside those of other subscriptions, end with their own, and are listed by how they are", async () => {
      const { rowid: other } = await subscribe(under.evreg, { subscription: "other" });
      for (const id of [1, other]) await under.evreg.replays.start(id, { from: FROM, status: "missed" });
      const listed = async (query: ReplayQuery) =>
        (await under.evreg.replays.list(query)).data.map(({ subscription_id: id }) => id);
      expect(await listed({ status: "running" })).toEqual([other, 1]);
      await under.evreg.subscriptions.delete(other);
      expect(await listed({ status: "running" })).toEqual([1]);
      expect(await listed({ status: "cancelled" })).toEqual([other]);
    });

    it("need a subscription that was not deleted", async () => {
      await under.evreg.subscriptions.delete(1);
      await refusal(under.evreg.replays.start(1, { from: FROM, status: "all" }), "not_found");
    });
  });
}
