import { Webhook } from "standardwebhooks";
import { describe, expect, it } from "vitest";
import { leaseText, parseLease } from "../../src/domain/pull.ts";
import type { NewClaim, PulledDelivery, PullOutcome, PullResult } from "../../src/domain/pull.ts";
import type { NewSubscription } from "../../src/domain/subscription.ts";
import { claimRequest } from "../support/claim-request.ts";
import { makeAny, newAction, newEvent, publish, rawEvent, refusal, subscribe, useEvreg } from "./harness.ts";
import type { EvregUnderTest, OpenEvreg } from "./harness.ts";

const PULL: NewSubscription = {
  application: "billing",
  subscription: "invoices",
  action: "user.created",
  mode: "pull",
};

/** A pull subscription, and what consumers of it do. */
async function pullOf({ evreg }: Pick<EvregUnderTest, "evreg">, given: Partial<NewSubscription>) {
  const { data } = await evreg.subscriptions.create({ ...PULL, ...given });
  const { rowid: id, secret } = data;
  const { subscriptions, deliveries } = evreg;
  return {
    id,
    secret,
    claim: async (input: NewClaim = {}) => (await subscriptions.claim(id, input)).data,
    finish: async (outcome: PullOutcome, { lease }: PulledDelivery, more: Partial<PullResult> = {}) => {
      const { data: finished } = await subscriptions.finish(id, {
        results: [{ lease, outcome, ...more }],
      });
      return finished[0]!;
    },
    delivery: async ({ delivery_id: delivery }: PulledDelivery) => (await deliveries.get(delivery)).data,
  };
}

/** Subscriptions whose deliveries consumers claim. */
export function pullContract(open: OpenEvreg): void {
  describe("pull subscriptions", () => {
    const under = useEvreg(open, (target) => makeAny(target, "user.created"));
    const pull = (given: Partial<NewSubscription> = {}) => pullOf(under, given);
    const send = (payload: object = {}) => publish(under.evreg, newEvent(payload));

    it("have no handler, and keep their mode", async () => {
      const { subscriptions } = under.evreg;
      const { data } = await subscriptions.create({
        ...PULL,
        headers: { "X-Team": "a" },
        expires_after_ms: 86_400_000,
      });
      expect(data).toMatchObject({
        mode: "pull",
        handler: null,
        last_claim_at: null,
        expires_after_ms: 86_400_000,
      });
      const { secret: _, ...record } = data;
      expect((await subscriptions.list()).data).toEqual([record]);
      expect((await subscriptions.update(data.rowid, { mode: "pull", handler: null })).data).toEqual(record);
      await refusal(subscriptions.update(data.rowid, { mode: "push" }), "invalid", {
        field: "mode",
        value: "push",
      });
    });

    it("share no secret with a handler of their name", async () => {
      const { subscriptions, actions } = under.evreg;
      for (const action of ["b.one", "b.two"]) await actions.create(newAction({ action }));
      const pulled = (await subscriptions.create(PULL)).data;
      const handler = "https://hooks.example.com/";
      const pushed = (await subscriptions.create({ ...PULL, action: "b.one", mode: "push", handler })).data;
      const second = (await subscriptions.create({ ...PULL, action: "b.two" })).data;
      expect(pushed.secret).not.toBe(pulled.secret);
      expect(second.secret).toBe(pulled.secret);
      expect((await subscriptions.rotateSecret(second.rowid)).meta).toEqual({ rotated: 2 });
      expect((await subscriptions.get(pushed.rowid)).data.previous_secret_until).toBeNull();
      expect((await under.store.queue.findSendable(pushed.rowid))?.secret).toBe(pushed.secret);
    });

    it("keep their deliveries from the engine", async () => {
      const { data } = await under.evreg.subscriptions.create(PULL);
      await send();
      const { claims, nextDueAtMs } = await under.store.queue.claim(
        claimRequest({ nowMs: under.clock.now() + 60_000 }),
      );
      expect([claims, nextDueAtMs]).toEqual([[], undefined]);
      expect((await under.evreg.deliveries.list({ subscription: data.rowid })).data).toMatchObject([
        { status: "pending", attempt: 0 },
      ]);
    });

    describe("and consumers", () => {
      const text = '{"name":"Zo\u00eb \\u00eb \u{1f600}","big":12345678901234567890,"b":1.0}';

      it("get all that a handler would be sent, to the byte", async () => {
        const { secret, claim, finish, delivery } = await pull({ headers: { "X-Team": "billing" } });
        const event = await publish(under.evreg, rawEvent(text));
        const [taken] = await claim({ consumer: "worker-1" });
        expect(taken).toMatchObject({
          event_id: event.rowid,
          action: "user.created",
          attempt: 1,
          expires_at: "2026-01-01T00:00:30.000Z",
          headers: {
            "Content-Type": "application/json",
            "X-Evreg-Event": "user.created",
            "X-Evreg-Delivery": `${event.rowid}_1`,
            "X-Team": "billing",
            Authorization: `Bearer ${secret}`,
          },
        });
        expect(taken!.body).toContain(`"payload":${text},"timestamp"`);
        expect(JSON.parse(taken!.body)).toMatchObject({ event_id: String(event.rowid), delivery_attempt: 1 });
        const { "webhook-id": id, "webhook-signature": signature } = taken!.headers;
        const sentAt = new Date(under.clock.now());
        expect(signature).toBe(new Webhook(secret).sign(id!, sentAt, taken!.body));
        expect(await delivery(taken!)).toMatchObject({ status: "delivering", attempt: 1 });
        await under.clock.advance(250);
        expect(await finish("delivered", taken!, { status: 201, reason: "thanks" })).toEqual({
          lease: taken!.lease,
          outcome: "stored",
          status: "delivered",
          expires_at: null,
        });
        expect(await delivery(taken!)).toMatchObject({
          status: "delivered",
          attempts: [
            {
              consumer: "worker-1",
              duration_ms: 250,
              outcome: "delivered",
              status_code: 201,
              response: "thanks",
            },
          ],
        });
        expect(await claim()).toEqual([]);
      });

      it("take so many at a time, and each is taken once", async () => {
        const { claim } = await pull();
        for (let count = 0; count < 5; count += 1) await send({ count });
        const taken = (await Promise.all([claim({ max: 2 }), claim({ max: 2 }), claim({ max: 2 })])).flat();
        expect(taken.map(({ event_id }) => event_id).toSorted((a, b) => a - b)).toEqual([1, 2, 3, 4, 5]);
      });

      it("have failures retried on the schedule, with the reason and no secret", async () => {
        const { secret, claim, finish, delivery } = await pull({ max_retries: 1 });
        await send();
        const [first] = await claim({ consumer: "worker" });
        expect(await finish("failed", first!, { reason: `no ${secret} here` })).toMatchObject({
          outcome: "stored",
          status: "waiting",
        });
        expect((await under.evreg.subscriptions.get(1)).data.failing_since).not.toBeNull();
        const [second] = await claim();
        expect(second!.attempt).toBe(2);
        await under.clock.advance(7);
        expect(await finish("failed", second!, { status: 500, duration_ms: 7 })).toMatchObject({
          status: "failed",
        });
        expect(await delivery(first!)).toMatchObject({
          last_error: "HTTP 500",
          attempts: [
            { error_code: "consumer_failed", response: "no [redacted] here", consumer: "worker" },
            { status_code: 500, error_code: null, duration_ms: 7 },
          ],
        });
      });

      it("say nothing of an attempt that evreg knows better", async () => {
        const { claim, finish, delivery } = await pull({ max_retries: 0 });
        await send();
        const [taken] = await claim();
        expect(taken!.lease).toMatch(/^[0-9a-z]+\.[0-9a-z]+\.[0-9a-z]+$/);
        await under.clock.advance(40);
        expect(await finish("failed", taken!, { duration_ms: 86_400_000 })).toMatchObject({
          status: "failed",
        });
        expect((await delivery(taken!)).attempts).toMatchObject([{ attempt: 1, duration_ms: 40 }]);
      });

      it("end nothing that another subscription's consumer has", async () => {
        const [mine, other] = [await pull(), await pull({ subscription: "other" })];
        const waits = [mine, other].map(({ claim }) => claim({ wait_ms: 5_000 }));
        await send();
        await under.clock.advance(10);
        const [own, foreign] = (await Promise.all(waits)).map(([taken]) => taken!);
        const [names, secret] = [parseLease(own!.lease)!, parseLease(foreign!.lease)!];
        expect(secret.claimId).not.toBe(names.claimId);
        const { deliveryId } = secret;
        for (const { claimId } of [names, secret]) {
          const forged = { ...own!, lease: leaseText({ ...names, deliveryId, claimId }) };
          for (const outcome of ["extended", "failed", "delivered", "released"] as const) {
            expect(await mine.finish(outcome, forged)).toMatchObject({ outcome: "fenced" });
          }
        }
        expect(await other.finish("delivered", foreign!)).toMatchObject({ outcome: "stored" });
      });

      it("extend nothing that they end, and nothing twice", async () => {
        const { id, claim, finish } = await pull();
        await send();
        const [{ lease } = { lease: "" }] = await claim();
        const outcomes = async (...results: readonly PullResult[]): Promise<readonly string[]> => {
          const { data } = await under.evreg.subscriptions.finish(id, { results });
          return data.map(({ outcome }) => outcome);
        };
        const extended: PullResult = { lease, outcome: "extended" };
        expect(await outcomes(extended, { ...extended, lease_ms: 60_000 })).toEqual(["stored", "fenced"]);
        expect(await outcomes(extended, { lease, outcome: "delivered" })).toEqual(["fenced", "stored"]);
        await send();
        const [next] = await claim();
        const both = [
          { lease: next!.lease, outcome: "released" } as const,
          { ...extended, lease: next!.lease },
        ];
        expect(await outcomes(...both)).toEqual(["stored", "fenced"]);
        expect(await finish("delivered", next!)).toMatchObject({ outcome: "fenced" });
      });

      it("lose what they hold too long, and are fenced then", async () => {
        const { claim, finish, delivery } = await pull();
        await send();
        const [late] = await claim({ lease_ms: 2_000, consumer: "sleeper" });
        await under.clock.advance(1_500);
        expect(await finish("extended", late!, { lease_ms: 2_000 })).toMatchObject({
          outcome: "stored",
          status: "delivering",
          expires_at: "2026-01-01T00:00:03.500Z",
        });
        await under.clock.advance(1_500);
        expect(await claim()).toEqual([]);
        const next = claim({ wait_ms: 5_000, consumer: "other" });
        await under.clock.advance(1_500);
        const [taken] = await next;
        expect(taken!.attempt).toBe(2);
        expect(await finish("delivered", late!)).toMatchObject({ outcome: "fenced", status: null });
        expect(await finish("extended", late!)).toMatchObject({ outcome: "fenced" });
        expect(await finish("delivered", taken!)).toMatchObject({ outcome: "stored" });
        expect(await finish("delivered", taken!)).toMatchObject({ outcome: "fenced" });
        expect((await delivery(taken!)).attempts).toMatchObject([
          { outcome: "returned", error_code: "interrupted", consumer: "sleeper" },
          { outcome: "delivered", consumer: "other" },
        ]);
      });

      it("give back what they have not begun, as if they had never taken it", async () => {
        const { claim, finish, delivery } = await pull();
        await send();
        const [taken] = await claim();
        expect(await finish("released", taken!)).toMatchObject({ outcome: "stored", status: "pending" });
        expect(await delivery(taken!)).toMatchObject({ status: "pending", attempt: 0, attempts: [] });
        const [again] = await claim();
        expect(again).toMatchObject({ attempt: 1 });
        await finish("failed", again!);
        await under.clock.advance(60_000);
        const [retried] = await claim();
        expect(await finish("released", retried!)).toMatchObject({ outcome: "stored", status: "waiting" });
        expect(await delivery(retried!)).toMatchObject({ status: "waiting", attempt: 1 });
      });

      it("wait for what is published, or until their time is over", async () => {
        const { claim } = await pull();
        const over = { taken: undefined as readonly PulledDelivery[] | undefined };
        void claim({ wait_ms: 1_000 }).then((taken) => (over.taken = taken));
        while (over.taken === undefined) {
          await under.clock.advance(500);
          await under.evreg.deliveries.list();
        }
        expect(over.taken).toEqual([]);
        const waits = claim({ wait_ms: 20_000 });
        await under.evreg.deliveries.list();
        await send();
        await under.clock.advance(10);
        expect(await waits).toHaveLength(1);
      });

      it("get the deliveries of an ordered subscription one by one, in their order", async () => {
        const { claim, finish } = await pull({ ordered: true });
        const events = [];
        for (let count = 0; count < 3; count += 1) events.push((await send({ count })).rowid);
        const seen: number[] = [];
        for (let failed = false; seen.length < 3;) {
          const [taken, ...others] = await claim({ max: 10 });
          expect(others).toEqual([]);
          expect(await claim({ max: 10 })).toEqual([]);
          if (failed || seen.length !== 1) {
            await finish("delivered", taken!);
            seen.push(taken!.event_id);
          } else {
            await finish("failed", taken!);
            failed = true;
          }
        }
        expect(seen).toEqual(events);
      });

      it("get one delivery of each key where the order is by key", async () => {
        const { claim, finish } = await pull({ ordered: { key: "/k" } });
        const events: number[] = [];
        for (const k of ["a", "a", "b"]) events.push((await send({ k })).rowid);
        const [first, second, third] = events;
        const [a, b, ...others] = await claim({ max: 10 });
        expect([a!.event_id, b!.event_id, others]).toEqual([first, third, []]);
        expect(await claim({ max: 10 })).toEqual([]);
        await finish("delivered", a!);
        expect((await claim({ max: 10 })).map(({ event_id }) => event_id)).toEqual([second]);
      });

      it("do not get what the filter excludes", async () => {
        const filter = { properties: { country: { const: "FR" } }, required: ["country"] };
        const { id, claim } = await pull({ filter });
        for (const country of ["DE", "DE", "FR"]) await send({ country });
        expect(await claim({ max: 2, wait_ms: 1_000 })).toMatchObject([{ event_id: 3 }]);
        const { data } = await under.evreg.deliveries.list({ subscription: id });
        expect(data.map(({ status }) => status)).toEqual(["delivering", "filtered", "filtered"]);
      });

      it("leave the time of the last claim, to the minute, also of one that brought nothing", async () => {
        const { id, claim } = await pull();
        for (const [afterMs, at] of [
          [0, "2026-01-01T00:00:00.000Z"],
          [59_999, "2026-01-01T00:00:00.000Z"],
          [1, "2026-01-01T00:01:00.000Z"],
          // The clock is set back.
          [-60_000, "2026-01-01T00:00:00.000Z"],
        ] as const) {
          under.clock.set(under.clock.now() + afterMs);
          await claim();
          expect((await under.evreg.subscriptions.get(id)).data.last_claim_at).toBe(at);
        }
      });

      it("get nothing while it is paused", async () => {
        const { id, claim } = await pull();
        await send();
        await under.evreg.subscriptions.update(id, { active: false });
        expect(await claim()).toEqual([]);
        await under.evreg.subscriptions.update(id, { active: true });
        expect(await claim()).toHaveLength(1);
        expect((await under.evreg.subscriptions.get(id)).data.last_claim_at).toBe("2026-01-01T00:00:00.000Z");
      });

      it("end what they have as usual once it was deleted", async () => {
        const { id, claim, finish, delivery } = await pull();
        for (let count = 0; count < 4; count += 1) await send({ count });
        const [done, failed, released, silent] = await claim({ max: 4 });
        await under.evreg.subscriptions.delete(id);
        await refusal(under.evreg.subscriptions.claim(id), "not_found");
        const foreign = await under.as(["listen:crm"]);
        const results = [{ lease: done!.lease, outcome: "delivered" }] as const;
        await refusal(foreign.subscriptions.finish(id, { results }), "forbidden");
        expect(await finish("extended", done!)).toMatchObject({ outcome: "stored" });
        expect(await finish("delivered", done!)).toMatchObject({ outcome: "stored", status: "delivered" });
        expect(await finish("failed", failed!, { status: 500 })).toMatchObject({ outcome: "stored" });
        expect(await finish("released", released!)).toMatchObject({ outcome: "stored" });
        expect(await finish("delivered", done!)).toMatchObject({ outcome: "fenced" });
        const ended = await Promise.all([done!, failed!, released!, silent!].map(delivery));
        expect(ended.map(({ status, attempts }) => [status, attempts.length])).toEqual([
          ["delivered", 1],
          ["cancelled", 1],
          ["cancelled", 0],
          ["delivering", 0],
        ]);
      });

      it("leave nothing leased when they leave", async () => {
        const { id, claim } = await pull();
        const leaving = new AbortController();
        const waits = under.evreg.subscriptions.claim(id, { wait_ms: 20_000 }, leaving.signal);
        const left = expect(waits).rejects.toThrow(/abort/i);
        await claim();
        leaving.abort();
        await left;
        await send();
        expect(await claim()).toHaveLength(1);
      });

      it("are counted while they wait", async () => {
        const { id } = await pull();
        const { subscriptions } = under.evreg;
        expect((await subscriptions.get(id)).meta).toEqual({ consumers: 0 });
        const leaving = new AbortController();
        const waiting = subscriptions.claim(id, { wait_ms: 20_000 }, leaving.signal).catch(() => undefined);
        while ((await subscriptions.get(id)).meta?.consumers !== 1) continue;
        leaving.abort();
        await waiting;
        while ((await subscriptions.get(id)).meta?.consumers !== 0) continue;
        const { rowid: push } = await subscribe(under.evreg, { subscription: "push" });
        expect((await subscriptions.get(push)).meta).toBeUndefined();
      });

      it("need a subscription of that mode", async () => {
        const { rowid } = await subscribe(under.evreg);
        await refusal(under.evreg.subscriptions.claim(rowid), "invalid");
      });

      it("need the scope listen, which allows nothing else", async () => {
        const { id } = await pull();
        const { rowid: push } = await subscribe(under.evreg, { subscription: "push" });
        for (const scope of ["listen", "listen:billing", "write:billing", "admin"]) {
          const { subscriptions } = await under.as([scope]);
          expect((await subscriptions.claim(id)).data).toEqual([]);
        }
        for (const scope of ["read", "publish", "listen:crm"]) {
          const { subscriptions } = await under.as([scope]);
          await refusal(subscriptions.claim(id), "forbidden");
          await refusal(subscriptions.finish(id, { results: [] }), "forbidden");
        }
        await under.evreg.actions.create(newAction({ action: "other" }));
        const { subscriptions, replays, actions } = await under.as(["listen:billing", "read:crm"]);
        const made = await subscriptions.create({ ...PULL, subscription: "own" });
        expect((await subscriptions.get(made.data.rowid)).data.mode).toBe("pull");
        await replays.count(made.data.rowid, { from: "2025-01-01T00:00:00Z", status: "all" });
        await subscriptions.delete(made.data.rowid);
        for (const call of [
          () => subscriptions.create({ ...PULL, mode: "push", handler: "https://hooks.example.com/" }),
          () => subscriptions.create({ ...PULL, application: "crm" }),
          // It would be told the secret that signs for the handler.
          () => subscriptions.create({ ...PULL, subscription: "push", action: "other" }),
          () => subscriptions.update(id, { max_retries: 1 }),
          () => subscriptions.delete(push),
          () => subscriptions.rotateSecret(id),
          () => actions.create(newAction({ action: "another" })),
        ]) {
          await refusal(call(), "forbidden");
        }
        const alone = await under.as(["listen:billing"]);
        await refusal(alone.subscriptions.create({ ...PULL, subscription: "unseen" }), "not_found");
        const elsewhere = await refusal(
          alone.subscriptions.create({ ...PULL, application: "elsewhere" }),
          "forbidden",
        );
        expect(elsewhere.message).toContain("needs the scope listen:elsewhere;");
      });

      it("are made only to actions that may be read", async () => {
        const own = { ...PULL, application: "crm", subscription: "own" };
        const { subscriptions } = await under.as(["listen"]);
        await refusal(subscriptions.create({ ...own, action: "*" }), "forbidden", { scope: "read" });
        const reading = await under.as(["listen", "read:crm"]);
        await reading.subscriptions.create(own);
      });
    });
  });
}
