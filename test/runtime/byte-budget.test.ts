import { expect, test } from "vitest";
import { ByteBudget, type ByteClaim, type Reservation } from "../../src/runtime/byte-budget.ts";
import { ManualClock } from "../support/manual-clock.ts";

const clock = new ManualClock();
const budgetOf = (maxBytes: number): ByteBudget => new ByteBudget(clock, maxBytes, "Too many.");

function claim(token: string, bytes: number): ByteClaim {
  return { bytes, caller: token };
}

test("those who wait are served in rotation, so that nobody waits for all of another", async () => {
  const budget = budgetOf(100);
  const order: string[] = [];
  const first = budget.tryReserve(claim("holder", 50))!;
  const second = budget.tryReserve(claim("other", 50))!;
  const wait = async (token: string): Promise<void> => {
    const reservation = await budget.reserve(claim(token, 50), 60_000);
    order.push(token);
    reservation.release();
  };
  const all = ["a", "a", "a", "a", "b", "c"].map(wait);
  first.release();
  second.release();
  await Promise.all(all);
  expect(order.slice(0, 3).toSorted()).toEqual(["a", "b", "c"]);
});

test("nothing passes a claim that waits, of a caller that holds nothing", async () => {
  const budget = budgetOf(100);
  const small = [1, 2, 3].map((name) => budget.tryReserve(claim(`small ${name}`, 20))!);
  let large: Reservation | undefined;
  const waiting = budget.reserve(claim("large", 50), 10_000).then((got) => (large = got));
  expect(budget.tryReserve(claim("small 4", 20))).toBeUndefined();
  small[0]!.release();
  await waiting;
  expect(large).toBeDefined();
  // It holds some now, so that it stops nobody any more.
  expect(budget.tryReserve(claim("small 5", 10))).toBeDefined();
});

test("a large claim that gives up no longer stops others", async () => {
  const budget = budgetOf(100);
  for (const name of ["a", "b", "c"]) budget.tryReserve(claim(name, 25));
  const refused = expect(budget.reserve(claim("large", 50), 5_000)).rejects.toMatchObject({
    code: "unavailable",
    message: "Too many.",
  });
  await clock.advance(2_000);
  const small = budget.reserve(claim("d", 20), 10_000);
  await clock.advance(3_000);
  await refused;
  await small;
});

test("a caller that asks for more than its share waits for itself alone", async () => {
  const budget = budgetOf(100);
  const held = budget.tryReserve(claim("greedy", 30))!;
  const refused = expect(budget.reserve(claim("greedy", 30), 2_000)).rejects.toMatchObject({
    message: "Too many.",
  });
  await clock.advance(1_500);
  expect(budget.tryReserve(claim("other", 50))).toBeDefined();
  await clock.advance(500);
  await refused;
  held.release();
});

test("what is kept of a reservation is no larger than it was, and the rest goes to who waits", async () => {
  const budget = budgetOf(100);
  const held = budget.tryReserve(claim("a", 50))!;
  expect(budget.tryReserve(claim("b", 50))).toBeDefined();
  const waits = budget.reserve(claim("c", 40), 60_000);
  held.keep(60);
  held.keep(10);
  const last = await waits;
  held.release();
  held.release();
  last.release();
  expect(budget.tryReserve(claim("d", 50))).toBeDefined();
});
