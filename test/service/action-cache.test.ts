import { beforeEach, describe, expect, test } from "vitest";
import type { Schemata } from "../../src/domain/action.ts";
import { ActionCache } from "../../src/service/action-cache.ts";
import type { StoredAction } from "../../src/store/catalog.ts";

const wide = (type: string): Schemata => ({
  properties: Object.fromEntries(Array.from({ length: 300 }, (_, index) => [`p${index}`, { type }])),
});

let stored: StoredAction;
let asked: number;
/** Compilations under way: each makes its next step when it is told to. */
let walks: (() => Promise<boolean>)[];
let cache: ActionCache;

beforeEach(() => {
  asked = 0;
  walks = [];
  stored = {
    actionId: 1,
    action: "a.b",
    application: "tests",
    revision: 1,
    schemata: wide("string"),
    isBuiltIn: false,
    retired: false,
    successor: null,
    deprecatedMs: null,
  } as unknown as StoredAction;
  const catalog = {
    findAction: async () => {
      asked += 1;
      return stored;
    },
  };
  const walk = <T>(steps: Iterator<void, T>): Promise<T> =>
    new Promise((resolve) => {
      walks.push(async () => {
        const { done, value } = steps.next();
        if (done === true) resolve(value);
        await new Promise(setImmediate);
        return done === true;
      });
    });
  cache = new ActionCache(catalog, { run: walk });
});

async function made(walk: number, steps: number): Promise<void> {
  for (let step = 0; step < steps; step++) await walks[walk]!();
}

async function finished(walk: number): Promise<void> {
  while (!(await walks[walk]!()));
}

const turn = (): Promise<unknown> => new Promise(setImmediate);

describe("an action at its first event", () => {
  test("is compiled in steps, once for all who wait for it", async () => {
    const loads = [cache.load("a.b"), cache.load("a.b"), cache.load("a.b")];
    await turn();
    await made(0, 9);
    expect(cache.get("a.b")).toBeUndefined();
    await finished(0);
    const [one, ...others] = await Promise.all(loads);
    expect(new Set(others)).toEqual(new Set([one]));
    expect([asked, walks.length]).toEqual([1, 1]);
    expect(cache.get("a.b")).toBe(one);
    expect(one?.validator.validate({ p299: 1 })).toMatchObject({ field: "p299" });
  });

  test("is not cached in an old revision when it changes meanwhile", async () => {
    const before = cache.load("a.b");
    await turn();
    await made(0, 3);
    stored = { ...stored, revision: 2, schemata: wide("integer") };
    cache.evict("a.b");
    const after = cache.load("a.b");
    await turn();
    expect(walks).toHaveLength(2);
    await finished(1);
    expect((await after)?.revision).toBe(2);
    await finished(0);
    // The store refuses what is held to it as stale, and it is loaded anew.
    expect((await before)?.revision).toBe(1);
    expect(cache.get("a.b")?.revision).toBe(2);
    cache.evictStale("a.b", (await before)!);
    expect(cache.get("a.b")?.revision).toBe(2);
  });
});
