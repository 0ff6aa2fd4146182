import { expect, it } from "vitest";
import type { SubscriptionPatch } from "../../../src/store/catalog.ts";
import type { Claim } from "../../../src/store/queue.ts";
import { Fixture, NOW, type OpenStore, resultOf } from "./fixture.ts";

export function finishSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  async function oneClaim(maxRetries = 5): Promise<Claim> {
    const action = (await on.store.catalog.findAction("user.created")) ?? (await on.action());
    if ((await on.store.catalog.listSubscriptions({})).length === 0)
      await on.subscription(action, { maxRetries });
    await on.publish(action);
    const [claim] = (await on.claim()).claims;
    if (claim === undefined) throw new Error("one was due");
    return claim;
  }

  const stored = (claim: Claim) => on.store.queue.find(claim.deliveryId);
  const subscriptionOf = ({ subscription }: Claim) =>
    on.store.catalog.findSubscription(subscription.subscriptionId);
  const change = ({ subscription }: Claim, patch: SubscriptionPatch) =>
    on.store.catalog.updateSubscription(subscription.subscriptionId, patch, NOW);

  it("stores the first 50 and the last 50 attempts of a delivery", async () => {
    const first = await oneClaim();
    const kept = async (): Promise<number[]> =>
      ((await stored(first))?.attempts ?? []).map(({ attempt }) => attempt);
    for (let n = 1; n <= 120; n += 1) {
      const hour = NOW + n * 3_600_000;
      const [claim] = n === 1 ? [first] : (await on.claim({ nowMs: hour })).claims;
      if (claim === undefined) throw new Error("it was due");
      expect(claim.attempt).toBe(n);
      // Some end in a crash of whoever sends.
      if (n % 7 === 0 || n === 103) await on.store.queue.releaseExpired(hour + 3_600_000);
      else await on.finish(claim, "failed", { statusCode: 500 });
      if (n % 20 === 0) {
        const expected = n <= 100 ? rising(1, n) : [...rising(1, 50), ...rising(n - 49, n)];
        expect(await kept()).toEqual(expected);
      }
      await on.store.queue.retry(first.deliveryId, NOW).catch(() => {});
    }
    expect(await stored(first)).toMatchObject({ attempt: 120 });
  });

  it.each([
    ["whatever is in it", "a\u0000b \ud83e\udd89 \"'\\ \u2028 \ufffd é".repeat(20), undefined],
    ["also one that ends within a character", "x\ud83e", "x\ufffd"],
  ])("stores the answer's text, %s", async (_, response, kept = response) => {
    const claim = await oneClaim();
    expect(await on.finish(claim, "failed", { statusCode: 500, response })).toBe(true);
    expect((await stored(claim))?.attempts[0]?.response).toBe(kept);
  });

  it("refuses a result whose claim is no longer valid", async () => {
    const claim = await oneClaim();
    expect(await on.finish({ ...claim, claimId: claim.claimId + 1 }, "delivered")).toBe(false);
    expect(await on.finish({ ...claim, deliveryId: 999 }, "delivered")).toBe(false);
    expect(await on.store.queue.releaseExpired(NOW + 90_000)).toBe(1);
    const [newer] = (await on.claim({ nowMs: NOW + 90_000 })).claims;
    expect(newer?.claimId).not.toBe(claim.claimId);
    expect(await on.finish(claim, "delivered")).toBe(false);
    expect(await stored(claim)).toMatchObject({ status: "delivering", attempt: 2 });
    if (newer !== undefined) expect(await on.finish(newer, "delivered")).toBe(true);
  });

  it("applies a result once, also within one call and among concurrent calls", async () => {
    const claim = await oneClaim();
    const result = resultOf(claim, "delivered", { statusCode: 200 });
    const answers = await Promise.all([
      on.store.queue.finish([result, result], NOW),
      on.store.queue.finish([result], NOW),
    ]);
    expect(
      answers
        .flat()
        .map(({ kind }) => kind)
        .toSorted(),
    ).toEqual(["fenced", "fenced", "stored"]);
    expect((await stored(claim))?.attempts).toHaveLength(1);
    expect(await on.store.queue.finish([], NOW)).toEqual([]);
  });

  it("stores nothing of one that was not started", async () => {
    const claim = await oneClaim();
    const before = await on.store.queue.list({ limit: 9 });
    expect(before[0]).toMatchObject({ status: "delivering", attempt: 1 });
    expect(await on.finish(claim, "never started")).toBe(true);
    expect(await on.finish(claim, "never started")).toBe(false);
    expect(await stored(claim)).toMatchObject({
      status: "pending",
      attempt: 0,
      // Due since it was published, so that none that came after it goes before it.
      next_attempt_at: "2026-03-01T12:00:00.000Z",
      attempts: [],
    });
    const [again] = (await on.claim()).claims;
    expect(again).toMatchObject({ deliveryId: claim.deliveryId, attempt: 1, failures: 0 });
    expect(again?.claimId).not.toBe(claim.claimId);
    expect(await on.finish(claim, "delivered")).toBe(false);
  });

  it("ends a filtered one without an attempt, and lets a person send it", async () => {
    const claim = await oneClaim();
    expect(await on.finish(claim, "filtered")).toBe(true);
    expect(await on.finish(claim, "filtered")).toBe(false);
    const filtered = {
      status: "filtered",
      attempt: 0,
      last_error: null,
      next_attempt_at: null,
      finished_at: "2026-03-01T12:01:01.000Z",
      attempts: [],
    };
    expect(await stored(claim)).toMatchObject(filtered);
    expect((await on.claim({ nowMs: NOW + 999_999 })).claims).toEqual([]);

    expect(await on.store.queue.retry(claim.deliveryId, NOW)).toMatchObject({ status: "pending" });
    const [again] = (await on.claim()).claims;
    expect(again).toMatchObject({ deliveryId: claim.deliveryId, attempt: 1, failures: 0 });
    if (again !== undefined) await on.finish(again, "failed", { statusCode: 500 });
    await on.store.queue.retry(claim.deliveryId, NOW);
    const [third] = (await on.claim()).claims;
    if (third !== undefined) await on.finish(third, "filtered");
    // What its attempts showed stays as it is.
    expect(await stored(claim)).toMatchObject({
      ...filtered,
      attempt: 1,
      last_error: "HTTP 500",
      attempts: [{ attempt: 1, outcome: "failed", status_code: 500 }],
    });
  });

  it("deactivates the subscription when the handler is gone, and holds the others", async () => {
    const claim = await oneClaim();
    const other = await oneClaim();
    const action = await on.store.catalog.findAction("user.created");
    if (action !== undefined) await on.publish(action, 1);
    await on.finish(claim, "gone", { statusCode: 410 });
    expect(await subscriptionOf(claim)).toMatchObject({
      active: false,
      disabled_reason: "The handler answered 410 Gone.",
    });
    await on.fail(other, NOW + 70_000, { statusCode: 500 });
    const all = await on.store.queue.list({ limit: 9 });
    expect(all.map(({ status }) => status)).toEqual(["held", "held", "failed"]);
    expect(await on.claim({ nowMs: NOW + 999_999 })).toEqual({
      claims: [],
      nextDueAtMs: undefined,
      limitedTiers: [],
    });
    const back = await change(claim, { active: true });
    expect(back).toMatchObject({ active: true, disabled_reason: null });
    expect((await on.claim({ nowMs: NOW + 999_999 })).claims).toHaveLength(2);
  });

  it("releases expired leases, and no others", async () => {
    const claim = await oneClaim();
    expect(await on.store.queue.releaseExpired(NOW + 89_999)).toBe(0);
    expect(await on.store.queue.releaseExpired(NOW + 90_000)).toBe(1);
    expect(await on.store.queue.releaseExpired(NOW + 90_000)).toBe(0);
    expect(await stored(claim)).toMatchObject({
      status: "pending",
      next_attempt_at: "2026-03-01T12:01:30.000Z",
      attempts: [{ attempt: 1, outcome: "returned", error_code: "interrupted", duration_ms: 30_000 }],
    });
  });
}

function rising(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}
