import { expect, test } from "vitest";
import { Shares } from "../../src/runtime/shares.ts";

function takeAll(shares: Shares, caller: unknown): number {
  let taken = 0;
  while (shares.tryTake(caller)) taken += 1;
  return taken;
}

test("each caller gets what leaves as much to others: half, a quarter, an eighth, and there is always a first place", () => {
  const shares = new Shares(200);
  expect([takeAll(shares, "a"), takeAll(shares, "b"), takeAll(shares, "c")]).toEqual([100, 50, 25]);
  for (const caller of ["d", "e", "f", "g"]) expect(takeAll(shares, caller)).toBeGreaterThan(0);
});

test("two that take in turn get a third each, and one of them half again once the other has left", () => {
  const shares = new Shares(9);
  const taken = { a: 0, b: 0 };
  for (let round = 0; round < 9; round += 1) {
    for (const caller of ["a", "b"] as const) if (shares.tryTake(caller)) taken[caller] += 1;
  }
  expect(taken).toEqual({ a: 3, b: 3 });
  for (let left = 3; left > 0; left -= 1) shares.release("b");
  expect(takeAll(shares, "a")).toBe(1);
});

test("what is larger than half has the half, and leaves none of it behind", () => {
  const shares = new Shares(100);
  expect(shares.tryTake("a", 1_000)).toBe(true);
  expect(shares.tryTake("a", 1)).toBe(false);
  expect(shares.tryTake("b", 50)).toBe(true);
  expect(shares.tryTake("c", 1)).toBe(false);
  shares.release("a", 1_000);
  expect([shares.free, shares.heldBy("a"), shares.heldBy("b")]).toEqual([50, 0, 50]);
});

test("a refusal names who holds how many: too many of one's own, or no place at all", () => {
  const shares = new Shares(4);
  const refused = (caller: unknown): unknown => {
    try {
      shares.take(caller, "streams are open");
    } catch (error) {
      return error;
    }
    return undefined;
  };
  for (const caller of ["a", "a", "b"]) expect(refused(caller)).toBeUndefined();
  expect(refused("a")).toMatchObject({
    code: "rate_limited",
    message:
      "2 of your streams are open already, and 1 of others, of 4 in all. That is your share while others need the rest: end one of yours, or try again in a moment.",
    details: { limit: 4, held: 2, others: 1 },
  });
  expect(refused("c")).toBeUndefined();
  expect(refused("d")).toMatchObject({
    code: "unavailable",
    message: "4 streams are open already, and no more at once. Try again in a moment.",
    details: { limit: 4, held: 0, others: 4 },
  });
});
