import { setImmediate as nextTurn } from "node:timers/promises";
import { beforeEach, describe, expect, test } from "vitest";
import { Yielder } from "../../src/runtime/yielding.ts";

/** A run has so long in a turn of the event loop. */
const SLICE_MS = 4;

let nowMs = 0;
let turn = 0;
let yielder: Yielder;
/** Steps made, by turn and by whom. */
let steps: { readonly turn: number; readonly name: string }[];

beforeEach(() => {
  nowMs = 0;
  turn = 0;
  steps = [];
  yielder = new Yielder(
    () => nowMs,
    (callback) => {
      setImmediate(callback);
    },
  );
});

/** Makes steps of a millisecond each, as a batch does. */
async function run(name: string, count: number): Promise<void> {
  for (let step = 0; step < count; step++) {
    if (yielder.shouldYield()) await yielder.yield();
    steps.push({ turn, name });
    nowMs += 1;
  }
}

/** Counts the turns of the real event loop until that is over. */
async function countTurns(begin: () => Promise<unknown>): Promise<void> {
  // Asked for before all else, so that each turn is counted before anything is done in it.
  let counter = setImmediate(count);
  function count(): void {
    counter = setImmediate(count);
    turn += 1;
  }
  await begin();
  clearImmediate(counter);
}

function stepsByTurn(): number[] {
  const counts = new Map<number, number>();
  for (const step of steps) counts.set(step.turn, (counts.get(step.turn) ?? 0) + 1);
  return [...counts.values()];
}

function* work(): Generator<void, string, void> {
  for (let step = 0; step < 10; step++) {
    if (step > 0) yield;
    steps.push({ turn, name: "work" });
    nowMs += 1;
  }
  return "done";
}

describe("long runs on one event loop", () => {
  test("that come together make no more steps in a turn than one alone", async () => {
    await countTurns(() => Promise.all(Array.from({ length: 8 }, (_, index) => run(`${index}`, 10))));
    expect(steps).toHaveLength(80);
    expect(Math.max(...stepsByTurn())).toBeLessThanOrEqual(SLICE_MS);
  });

  test("take their turns in the order they asked", async () => {
    await countTurns(() => Promise.all(["a", "b", "c"].map((name) => run(name, 2 * SLICE_MS))));
    const order = steps.filter((_, index) => index % SLICE_MS === 0).map(({ name }) => name);
    expect(order).toEqual(["a", "a", "b", "c", "b", "c"]);
  });

  test("let whatever else waits for the loop in between", async () => {
    const others: number[] = [];
    const other = async (): Promise<void> => {
      for (let count = 0; count < 5; count++) {
        await nextTurn();
        others.push(steps.length);
      }
    };
    await Promise.all([run("a", 100), run("b", 100), other()]);
    for (const [index, made] of others.entries()) {
      expect(made).toBeLessThanOrEqual((index + 2) * SLICE_MS);
    }
  });

  test("share one slice of time where they are short", async () => {
    await countTurns(() => Promise.all([run("a", 1), run("b", 1), run("c", 1)]));
    expect(steps.map(({ turn: at, name }) => [at, name])).toEqual([
      [0, "a"],
      [0, "b"],
      [0, "c"],
    ]);
  });

  test("wait for nobody when alone", async () => {
    await countTurns(() => run("a", 25));
    expect(stepsByTurn()).toEqual([4, 4, 4, 4, 4, 4, 1]);
    const before = turn;
    await run("b", 2);
    expect(turn).toBe(before);
  });

  test("do not lose their place to one that came later", async () => {
    const late = nextTurn().then(() => run("late", SLICE_MS));
    await countTurns(() => Promise.all([run("a", SLICE_MS), run("b", SLICE_MS), late]));
    expect(steps.map(({ name }) => name).join(" ")).toBe("a a a a b b b b late late late late");
  });

  test("may be made of steps that somebody else knows", async () => {
    let answer: string | undefined;
    await countTurns(async () => (answer = await yielder.run(work())));
    expect(answer).toBe("done");
    expect(stepsByTurn()).toEqual([4, 4, 2]);
  });
});
