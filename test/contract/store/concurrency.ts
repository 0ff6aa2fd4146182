import { expect, it } from "vitest";
import { eventOf, Fixture, NOW, type OpenStore, recordedRowid } from "./fixture.ts";

export function concurrencySuite(open: OpenStore): void {
  const on = Fixture.use(open);

  it("answers each publish of a burst with its own event", async () => {
    const action = await on.action();
    await on.subscription(action);
    const outcomes = await Promise.all(
      Array.from({ length: 1_000 }, (_, n) => on.record([eventOf(action, `{"n":${n}}`)])),
    );
    const rowids = outcomes.map(([outcome]) => recordedRowid(outcome));
    expect(new Set(rowids).size).toBe(1_000);
    for (const n of [0, 1, 499, 998, 999]) {
      const found = await on.events.find(rowids[n] ?? 0);
      expect(Buffer.from(found?.payload ?? []).toString()).toBe(`{"n":${n}}`);
    }
    const { total } = await on.events.list({ order: "desc", limit: 1, page: 1 });
    expect(total).toBe(1_000);
  });

  it("answers each result of a burst with its own outcome", async () => {
    const action = await on.action();
    await on.subscription(action);
    await on.events.record(
      Array.from({ length: 60 }, () => eventOf(action)),
      NOW,
    );
    const { claims } = await on.claim();
    await Promise.all([
      ...claims.map((claim) => on.finish(claim, "delivered", { response: `got ${claim.deliveryId}` })),
      on.record([eventOf(action, `"bytes of another kind"`)]),
    ]);
    expect(claims).toHaveLength(60);
    for (const { deliveryId } of claims) {
      const found = await on.queue.find(deliveryId);
      expect(found?.attempts).toMatchObject([{ response: `got ${deliveryId}` }]);
    }
  });

  it("fails one write of a burst alone", async () => {
    const { action, subscription: mine } = await on.due();
    const writes: readonly (readonly [isDone: boolean, write: Promise<unknown>])[] = [
      [true, on.record([eventOf(action)])],
      [false, on.action("user.created")],
      [true, on.action("user.deleted")],
      [false, on.subscription(action)],
      [false, on.queue.retry(1, NOW)],
      [true, on.update(mine.rowid, { maxRetries: 7 })],
      [false, on.subscription(action, { subscription: "b\u0000c" })],
      [true, on.record([eventOf(action)])],
      [true, on.claim()],
    ];
    const answers = await Promise.allSettled(writes.map(([, write]) => write));
    expect(answers.map(({ status }) => status === "fulfilled")).toEqual(writes.map(([isDone]) => isDone));
    for (const answer of answers) {
      if (answer.status === "rejected") expect(answer.reason).toMatchObject({ name: "EvregError" });
    }
    expect(await on.catalog.listActions({ applications: ["crm"] })).toHaveLength(2);
    expect(await on.catalog.listSubscriptions({})).toMatchObject([{ max_retries: 7 }]);
    expect(await on.rowids()).toHaveLength(3);
    expect(on.store.health()).toEqual({ status: "ok" });
  });

  it("answers reads during writes, with everything committed before", async () => {
    const action = await on.action();
    let published = 0;
    const publish = async (): Promise<void> => {
      for (let n = 0; n < 50; n += 1) {
        await on.record([eventOf(action)]);
        published += 1;
      }
    };
    const look = async (): Promise<void> => {
      for (let n = 0; n < 30; n += 1) {
        const before = published;
        const { total } = await on.events.list({ order: "desc", limit: 1, page: 1 });
        expect(total).toBeGreaterThanOrEqual(before);
      }
    };
    await Promise.all([publish(), publish(), look(), look()]);
    expect(published).toBe(100);
  });

  it("when closed finishes what was started, refuses more, and can be closed twice", async () => {
    const action = await on.action();
    const started = Array.from({ length: 20 }, () => on.record([eventOf(action)]));
    const closing = on.store.close();
    const late = on.record([eventOf(action)]);
    await expect(late).rejects.toMatchObject({ code: "unavailable" });
    expect((await Promise.all(started)).flat().map(({ kind }) => kind)).toEqual(
      started.map(() => "recorded"),
    );
    await closing;
    await on.store.close();
    expect(on.store.health().status).toBe("closed");
    await expect(on.events.find(1)).rejects.toMatchObject({ code: "unavailable" });
  });
}
