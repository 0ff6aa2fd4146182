import { afterAll, beforeEach, expect, test, vi } from "vitest";
import { Filters } from "../../src/delivery/filters.ts";
import type { Schemata } from "../../src/domain/action.ts";
import { NO_SETTINGS } from "../../src/domain/subscription-settings.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { SHORT_CHECK_BYTES } from "../../src/schema/limits.ts";
import { ValidationThread } from "../../src/service/validation-thread.ts";
import type { Claim } from "../../src/store/queue.ts";
import { claimOf } from "../support/claim-request.ts";
import { KeptLog } from "../support/kept-log.ts";
import { ManualClock } from "../support/manual-clock.ts";

/** Steps are made when the test says so. */
class ManualYielder {
  readonly #waiting: (() => void)[] = [];
  made = 0;
  isHeld = false;

  readonly run = async <T>(steps: Iterator<void, T>): Promise<T> => {
    for (;;) {
      if (this.isHeld) await new Promise<void>((resolve) => this.#waiting.push(resolve));
      this.made += 1;
      const { done, value } = steps.next();
      if (done === true) return value;
    }
  };

  goOn(): void {
    this.isHeld = false;
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}

const clock = new ManualClock();
const longChecks = new ValidationThread(clock);
afterAll(() => clock.advance(60_000));

let yielder: ManualYielder;
beforeEach(() => {
  yielder = new ManualYielder();
});

async function excludes(filters: Filters, one: Claim): Promise<boolean> {
  return !(await filters.passes(one));
}

function claim(subscriptionId: number, filter: Schemata, payload: object): Claim {
  const settings = { ...NO_SETTINGS, filter };
  return claimOf(1, subscriptionId, { payload: Buffer.from(JSON.stringify(payload)), settings });
}

const only = (country: number): Schemata => ({ properties: { country: { const: country } } });
const properties = (count: number): Schemata => ({
  properties: Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, { type: "string" }])),
});

/** Each compilation of it is logged. */
const UNUSABLE: Schemata = { properties: { a: { pattern: "(" } } };

test("filters are compiled once, and one that cannot be lets all pass and is logged once", async () => {
  const logger = new KeptLog();
  const filters = new Filters({ logger, yielder, longChecks });
  for (let round = 0; round < 20; round += 1) {
    for (let id = 1; id <= 100; id += 1) {
      expect(await excludes(filters, claim(id, UNUSABLE, { a: "x" }))).toBe(false);
    }
  }
  expect(logger.of("error")).toHaveLength(100);
});

test.each([
  { count: 300, large: { description: "x".repeat(60_000) } },
  { count: 100, large: { default: Array.from({ length: 19_000 }, () => []) } },
])("of $count large filters those that were used last stay compiled", async ({ count, large }) => {
  const filters = new Filters({ logger: silentLogger, yielder, longChecks });
  for (let id = 1; id <= count; id += 1) await filters.passes(claim(id, large, {}));
  expect(filters.passes(claim(count, large, {}))).toBe(true);
  expect(filters.passes(claim(1, large, {}))).toBeInstanceOf(Promise);
});

test("a filter that was changed decides as it is now", async () => {
  const filters = new Filters({ logger: silentLogger, yielder, longChecks });
  expect(await excludes(filters, claim(1, only(1), { country: 1 }))).toBe(false);
  expect(await excludes(filters, claim(1, only(2), { country: 1 }))).toBe(true);
  expect(await excludes(filters, claim(1, only(2), { country: 2 }))).toBe(false);
});

test("a filter is compiled in steps, once for all that wait for it", async () => {
  const filters = new Filters({ logger: silentLogger, yielder, longChecks });
  const wide = claim(1, properties(300), { p299: 1 });
  yielder.isHeld = true;
  const preparing = filters.passes(wide);
  expect(preparing).toBeInstanceOf(Promise);
  const second = filters.passes(wide);
  // Another one comes in between.
  yielder.isHeld = false;
  expect(await excludes(filters, claim(2, only(1), { country: 2 }))).toBe(true);
  yielder.made = 0;
  yielder.goOn();
  expect(await Promise.all([preparing, second])).toEqual([false, false]);
  expect(yielder.made).toBeGreaterThan(3);
  expect(filters.passes(wide)).toBe(false);
  // One that is changed is made ready anew, and a retry needs none.
  expect(filters.passes(claim(1, only(3), {}))).toBeInstanceOf(Promise);
  expect(filters.passes({ ...claim(9, only(3), {}), failures: 1 })).toBe(true);
});

const large = (country: number) => ({ country, note: "x".repeat(SHORT_CHECK_BYTES) });

test("a large payload is checked by the filter in force, on another thread", async () => {
  const filters = new Filters({ logger: silentLogger, yielder, longChecks });
  const read = vi.spyOn(JSON, "parse");
  expect(await excludes(filters, claim(1, only(1), large(1)))).toBe(false);
  expect(await excludes(filters, claim(1, only(1), large(2)))).toBe(true);
  expect(await excludes(filters, claim(1, only(2), large(2)))).toBe(false);
  // Stores of other tests may read their answers meanwhile.
  expect(read.mock.calls.filter(([text]) => text.length >= SHORT_CHECK_BYTES)).toEqual([]);
  read.mockRestore();
});

test("a large payload that takes too long to check, or cannot be checked, is sent", async () => {
  const logger = new KeptLog();
  const filters = new Filters({ logger, yielder, longChecks });
  const items = Array.from({ length: 20_000 }, (_, at) => at);
  const costly = {
    properties: { items: { items: { allOf: Array.from({ length: 40 }, () => ({ minimum: 0 })) } } },
  };
  expect(await excludes(filters, claim(1, costly, { items }))).toBe(false);
  expect(await excludes(filters, claim(2, UNUSABLE, { items }))).toBe(false);
  expect(logger.lines.map(({ message }) => message)).toEqual([
    "The payload takes too long to check against the subscription's filter; it is sent.",
    "A large payload could not be checked against the subscription's filter; it is sent.",
  ]);
});

test("a large payload is checked by each of very many filters, however much waits", async () => {
  const logger = new KeptLog();
  const filters = new Filters({ logger, yielder, longChecks });
  const payload = { country: 2, note: "x".repeat(1024 * 1024) };
  const event = { ...claim(1, only(1), payload).event };
  const claims = Array.from({ length: 80 }, (_, at) => ({
    ...claim(at, only(1), {}),
    deliveryId: at,
    event,
  }));
  expect(await Promise.all(claims.map((one) => excludes(filters, one)))).toEqual(claims.map(() => true));
  expect(logger.lines).toEqual([]);
});
