import { beforeEach, describe, expect, it } from "vitest";
import type { DeliveryQuery, DeliveryWithAttempts } from "../../src/domain/delivery.ts";
import type { ReplayQuery } from "../../src/domain/replay.ts";
import { BACKLOG_CAUSES } from "../../src/domain/stats/stats.ts";
import type { Claim } from "../../src/store/queue.ts";
import {
  claimDue,
  finishNow,
  makeAny,
  newAction,
  newEvent,
  publish,
  refusal,
  subscribe,
  useEvreg,
  type EvregUnderTest,
  type OpenEvreg,
} from "./harness.ts";

async function prepare(under: EvregUnderTest): Promise<void> {
  await under.evreg.actions.create(newAction());
  await makeAny(under, "any");
}

/** The one delivery there is. */
async function first({ evreg }: EvregUnderTest): Promise<DeliveryWithAttempts> {
  return (await evreg.deliveries.get(1)).data;
}

const FROM = "2026-01-01T00:00:00.000Z";

/** Two events that the subscription missed. */
async function prepareMissed(under: EvregUnderTest): Promise<void> {
  const { evreg, clock } = under;
  await makeAny(under, "user.created");
  for (let n = 0; n < 2; n += 1) {
    await publish(evreg, newEvent({}));
    await clock.advance(60_000);
  }
  await subscribe(evreg);
}

export function deliveriesContract(open: OpenEvreg): void {
  describe("deliveries", () => {
    const under = useEvreg(open, prepare);
    const claim = (limit?: number) => claimDue(under, limit);
    const finish = finishNow.bind(undefined, under);

    /** Fails what is due, as an ordered subscription's is: all of that waits for the retry. */
    const failFirst = async (): Promise<void> => {
      const [started] = await claim(1);
      await finish(started!, "failed", { statusCode: 500, retryAfterMs: 9_000 });
    };

    /** @param because part of the message */
    const skipRefused = async (because: string): Promise<void> => {
      const { message, details } = await refusal(under.evreg.deliveries.skip(1), "conflict");
      expect(message).toContain(because);
      expect(details).toMatchObject({ rowid: 1, status: (await first(under)).status });
    };

    it("are one for each active subscription of the event's action", async () => {
      await subscribe(under.evreg, { subscription: "one" });
      await subscribe(under.evreg, { subscription: "two", application: "shop" });
      await subscribe(under.evreg, { subscription: "paused", active: false });
      await subscribe(under.evreg, { subscription: "other action", action: "any" });
      await publish(under.evreg);
      const { data } = await under.evreg.deliveries.list();
      expect(data.map(({ subscription }) => subscription).toSorted()).toEqual(["one", "two"]);
      const two = data.find(({ subscription }) => subscription === "two");
      expect(two).toEqual({
        rowid: expect.any(Number),
        event_id: 1,
        subscription_id: 2,
        application: "shop",
        subscription: "two",
        action: "user.created",
        status: "pending",
        attempt: 0,
        next_attempt_at: "2026-01-01T00:00:00.000Z",
        last_error: null,
        timestamped: "2026-01-01T00:00:00.000Z",
        finished_at: null,
      });
      expect((await under.evreg.deliveries.get(two!.rowid)).data).toEqual({ ...two, attempts: [] });
    });

    it("show why an address was refused, to callers who may do everything", async () => {
      await subscribe(under.evreg);
      await publish(under.evreg);
      const [started] = await claim();
      const why = "Deliveries to 10.0.0.1 are not allowed: it is private.";
      await finish(started!, "failed", { errorCode: "address_refused", refusal: why });
      const [again] = await claim();
      await finish(again!, "failed", { statusCode: 500, response: "no" });
      const attempts = async ({ evreg } = under) => (await first({ ...under, evreg })).attempts;
      const [refused, failed] = [
        { error_code: "address_refused", response: null },
        { error_code: null, response: "no", refusal: null },
      ];
      expect(await attempts()).toMatchObject([{ ...refused, refusal: why }, failed]);
      for (const scopes of [["read"], ["read", "admin:billing"]]) {
        const evreg = await under.as(scopes);
        expect(await attempts({ ...under, evreg })).toMatchObject([{ ...refused, refusal: null }, failed]);
      }
    });

    it("show the last attempts of their subscription, newest first by their start", async () => {
      await subscribe(under.evreg);
      await subscribe(under.evreg, { subscription: "other" });
      await publish(under.evreg);
      await publish(under.evreg);
      const mine = (await claim()).filter(({ subscription }) => subscription.subscriptionId === 1);
      const [one, two] = mine as [Claim, Claim];
      await finish(two, "delivered", { statusCode: 200 });
      await under.clock.advance(1_000);
      const why = "Deliveries to 10.0.0.1 are not allowed: it is private.";
      await finish(one, "failed", { errorCode: "address_refused", refusal: why });
      await under.clock.advance(1_000);
      const [again] = await claim();
      await finish(again!, "failed", { statusCode: 500, response: "no" });

      const attempts = (id: number, query?: { limit?: number }) =>
        under.evreg.subscriptions.attempts(id, query);
      const { data } = await attempts(1);
      const delivery = (await under.evreg.deliveries.get(one.deliveryId)).data;
      const ids = { delivery_id: one.deliveryId, event_id: one.event.eventId };
      expect(data).toEqual([
        { ...ids, ...delivery.attempts[1] },
        { ...ids, ...delivery.attempts[0] },
        expect.objectContaining({ delivery_id: two.deliveryId, attempt: 1, outcome: "delivered" }),
      ]);
      expect(data[1]).toMatchObject({ refusal: why });
      expect((await attempts(1, { limit: 1 })).data).toEqual([data[0]]);
      expect((await attempts(2)).data).toEqual([]);

      const reader = await under.as(["read:billing"]);
      expect((await reader.subscriptions.attempts(1)).data[1]).toMatchObject({ refusal: null });
      await refusal((await under.as(["read:shop"])).subscriptions.attempts(1), "not_found");
    });

    it("are listed by the key of their order", async () => {
      await subscribe(under.evreg, { action: "any", ordered: { key: "/c" } });
      await subscribe(under.evreg, { action: "any", subscription: "other" });
      for (const c of ["C-17", 42, "42", "C-17", [1]]) await publish(under.evreg, newEvent({ c }, "any"));
      const events = async (query: DeliveryQuery): Promise<number[]> =>
        (await under.evreg.deliveries.list(query)).data.map((one) => one.event_id);
      expect(await events({ key: "C-17" })).toEqual([4, 1]);
      expect(await events({ key: "42" })).toEqual([3, 2]);
      expect(await events({ key: "C-18" })).toEqual([]);
    });

    it("are listed newest first, by exact filters", async () => {
      await subscribe(under.evreg);
      await subscribe(under.evreg, { action: "any" });
      for (let n = 1; n <= 6; n++) {
        await publish(under.evreg, n % 2 === 0 ? newEvent({}, "any") : newEvent());
        await under.clock.advance(60_000);
      }
      await under.evreg.subscriptions.update(2, { active: false });
      const events = async (query: DeliveryQuery): Promise<number[]> =>
        (await under.evreg.deliveries.list(query)).data.map(({ event_id }) => event_id);
      expect(await events({})).toEqual([6, 5, 4, 3, 2, 1]);
      expect(await events({ event: 4 })).toEqual([4]);
      expect(await events({ event: 99 })).toEqual([]);
      expect(await events({ subscription: 2 })).toEqual([6, 4, 2]);
      expect(await events({ action: "user.created" })).toEqual([5, 3, 1]);
      expect(await events({ status: "held" })).toEqual([6, 4, 2]);
      expect(await events({ status: "pending", action: "any" })).toEqual([]);
      expect(await events({ from: "2026-01-01T00:02:00Z", to: "2026-01-01T00:04:00Z" })).toEqual([4, 3]);
      expect(await events({ subscription: 1, limit: 2 })).toEqual([5, 3]);
      expect(await events({ cause: "held" })).toEqual([6, 4, 2]);
      expect(await events({ cause: "due" })).toEqual([5, 3, 1]);
      expect(await events({ cause: "due", status: "pending", event: 3 })).toEqual([3]);
      expect(await events({ cause: "due", status: "held" })).toEqual([]);
      expect(await events({ cause: "held", status: "waiting" })).toEqual([]);
      expect(await events({ cause: "blocked" })).toEqual([]);
      const { backlog } = (await under.evreg.stats()).data;
      for (const cause of BACKLOG_CAUSES) {
        expect((await events({ cause })).length).toBe(backlog[cause].deliveries);
      }
    });

    describe("in progress", () => {
      beforeEach(async () => {
        await subscribe(under.evreg);
        await publish(under.evreg);
      });

      it("list their attempts", async () => {
        const [started] = await claim();
        expect(await first(under)).toMatchObject({ status: "delivering", attempt: 1, attempts: [] });
        await finish(started!, "failed", { statusCode: 500, response: "oh no", retryAfterMs: 2_000 });
        expect(await first(under)).toMatchObject({
          status: "waiting",
          attempt: 1,
          next_attempt_at: "2026-01-01T00:00:02.000Z",
          last_error: "HTTP 500",
        });
        await under.clock.advance(2_000);
        const [again] = await claim();
        await finish(again!, "delivered", { statusCode: 204 });
        expect(await first(under)).toMatchObject({
          status: "delivered",
          attempt: 2,
          next_attempt_at: null,
          last_error: null,
          finished_at: "2026-01-01T00:00:02.000Z",
          attempts: [
            {
              attempt: 1,
              started_at: "2026-01-01T00:00:00.000Z",
              duration_ms: 12,
              outcome: "failed",
              status_code: 500,
              error_code: null,
              response: "oh no",
            },
            { attempt: 2, outcome: "delivered", status_code: 204, error_code: null, response: null },
          ],
        });
      });

      it("can be retried after they failed, and keep their history", async () => {
        await under.evreg.subscriptions.update(1, { max_retries: 0 });
        const [started] = await claim();
        await finish(started!, "failed", { errorCode: "timeout" });
        expect(await first(under)).toMatchObject({
          status: "failed",
          last_error: "timeout",
          next_attempt_at: null,
        });
        await under.clock.advance(5_000);
        const { data } = await under.evreg.deliveries.retry(1);
        expect(data).toMatchObject({
          status: "pending",
          next_attempt_at: "2026-01-01T00:00:05.000Z",
          finished_at: null,
        });
        expect(data).not.toHaveProperty("attempts");
        const [change] = (await under.evreg.audit.list({ limit: 1 })).data;
        expect(change).toMatchObject({ change: "delivery.retried", record_id: 1 });
        expect(await claim()).toMatchObject([{ deliveryId: 1, attempt: 2, failures: 0 }]);
        expect((await first(under)).attempts).toMatchObject([{ attempt: 1, error_code: "timeout" }]);
      });

      it("can be retried after success, and before their wait is over", async () => {
        const [started] = await claim();
        await finish(started!, "failed", { statusCode: 500, retryAfterMs: 9_000 });
        await under.evreg.deliveries.retry(1);
        const [again] = await claim();
        await finish(again!, "delivered", { statusCode: 200 });
        await under.evreg.deliveries.retry(1);
        expect(await claim()).toMatchObject([{ deliveryId: 1, attempt: 3 }]);
      });

      it("cannot be retried while they are pending, in progress, held or cancelled", async () => {
        await refusal(under.evreg.deliveries.retry(1), "conflict");
        const [started] = await claim();
        await refusal(under.evreg.deliveries.retry(1), "conflict");
        await finish(started!, "failed", { statusCode: 500, retryAfterMs: 9_000 });
        await under.evreg.subscriptions.update(1, { active: false });
        await refusal(under.evreg.deliveries.retry(1), "conflict");
        await under.evreg.subscriptions.delete(1);
        await refusal(under.evreg.deliveries.retry(1), "conflict");
      });

      it("cannot be retried once their subscription was deleted, though they failed", async () => {
        await under.evreg.subscriptions.update(1, { max_retries: 0 });
        const [started] = await claim();
        await finish(started!, "failed", { errorCode: "timeout" });
        await under.evreg.subscriptions.delete(1);
        const { message } = await refusal(under.evreg.deliveries.retry(1), "conflict");
        expect(message).toContain("was deleted");
      });
    });

    describe("that block an ordered subscription", () => {
      beforeEach(async () => {
        await subscribe(under.evreg, { ordered: true, max_retries: 0 });
        await publish(under.evreg);
        await publish(under.evreg);
      });

      it("are shown by the subscription, and can be skipped: they have failed, and the next is due", async () => {
        expect((await under.evreg.subscriptions.get(1)).data.blocked_by).toBeNull();
        await failFirst();
        expect((await under.evreg.subscriptions.get(1)).data.blocked_by).toBe(1);
        expect((await under.evreg.subscriptions.list()).data).toMatchObject([{ blocked_by: 1 }]);
        expect(await claim()).toEqual([]);
        const { data } = await under.evreg.deliveries.skip(1);
        const { attempts: _, ...stored } = await first(under);
        expect(data).toEqual(stored);
        expect(data).toMatchObject({ status: "failed", attempt: 1, last_error: "HTTP 500" });
        expect((await under.evreg.subscriptions.get(1)).data).toMatchObject({
          blocked_by: null,
          slowed_until: null,
        });
        expect(await claim()).toMatchObject([{ deliveryId: 2 }]);
      });

      it("can be skipped while the subscription is paused, and retried afterwards", async () => {
        await failFirst();
        await under.evreg.subscriptions.update(1, { active: false });
        expect((await under.evreg.deliveries.skip(1)).data.status).toBe("failed");
        expect((await under.evreg.stats({ subscription: 1 })).data.totals.failed).toBe(1);
        await under.evreg.subscriptions.update(1, { active: true });
        await under.evreg.deliveries.retry(1);
        expect(await claim(1)).toMatchObject([{ deliveryId: 1, attempt: 2 }]);
      });

      it("cannot be skipped before they failed, while they are in progress, or after they ended", async () => {
        await skipRefused("no attempt of it has failed");
        const [started] = await claim(1);
        await skipRefused("an attempt of it is under way");
        await finish(started!, "delivered", { statusCode: 200 });
        await skipRefused("it is delivered");
      });
    });
  });

  describe("replays", () => {
    const under = useEvreg(open, prepareMissed);

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
      await refusal(under.evreg.replays.start(1, { from: FROM, status: "failed" }), "conflict", { rowid: 1 });
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
