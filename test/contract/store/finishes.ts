import { expect, it } from "vitest";
import type { Claim } from "../../../src/store/queue.ts";
import { Fixture, NOW, type OpenStore, resultOf } from "./fixture.ts";

export function finishSuite(open: OpenStore): void {
  const on = Fixture.use(open);

  async function oneClaim(): Promise<Claim> {
    await on.due();
    const [claim] = (await on.claim()).claims;
    if (claim === undefined) throw new Error("one was due");
    return claim;
  }

  const stored = (claim: Claim) => on.queue.find(claim.deliveryId);

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
      if (n % 7 === 0 || n === 103) await on.queue.releaseExpired(hour + 3_600_000);
      else await on.finish(claim, "failed", { statusCode: 500 });
      if (n % 20 === 0) {
        const expected = n <= 100 ? rising(1, n) : [...rising(1, 50), ...rising(n - 49, n)];
        expect(await kept()).toEqual(expected);
      }
      await on.queue.retry(first.deliveryId, NOW).catch(() => {});
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

  it("keeps where the time of an attempt went that had a connection made for it", async () => {
    await on.due(2);
    const connection = { dnsMs: 3.4, connectMs: 21.6, firstByteMs: undefined };
    const [one, two] = (await on.claim()).claims;
    await on.finish(one!, "failed", { errorCode: "timeout", connection });
    await on.finish(two!, "delivered", { statusCode: 200, response: "ok" });
    expect((await stored(one!))?.attempts).toMatchObject([
      { error_code: "timeout", dns_ms: 3, connect_ms: 22, first_byte_ms: null },
    ]);
    expect((await stored(two!))?.attempts).toMatchObject([
      { response: "ok", dns_ms: null, connect_ms: null, first_byte_ms: null },
    ]);
  });

  it("applies a result once, also within one call and among concurrent calls, and of no other claim", async () => {
    const claim = await oneClaim();
    expect(await on.finish({ ...claim, claimId: claim.claimId + 1 }, "delivered")).toBe(false);
    expect(await on.finish({ ...claim, deliveryId: 999 }, "delivered")).toBe(false);
    const result = resultOf(claim, "delivered", { statusCode: 200 });
    const answers = await Promise.all([
      on.queue.finish([result, result], NOW),
      on.queue.finish([result], NOW),
    ]);
    expect(
      answers
        .flat()
        .map(({ kind }) => kind)
        .toSorted(),
    ).toEqual(["fenced", "fenced", "stored"]);
    expect((await stored(claim))?.attempts).toHaveLength(1);
    expect(await on.queue.finish([], NOW)).toEqual([]);
  });
}

function rising(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, index) => from + index);
}
