import { expect, test } from "vitest";
import { Filters } from "../../src/delivery/filters.ts";
import type { Schemata } from "../../src/domain/action.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { compileSchema } from "../../src/schema/compile.ts";
import type { Claim } from "../../src/store/claims.ts";
import { randomFrom } from "../schema/compatibility/random-payloads.ts";

const random = { bytes: () => new Uint8Array(), fraction: randomFrom(7) };

function claim(subscriptionId: number, filter: Schemata, payload: object): Claim {
  const event = {
    eventId: 1,
    action: "a.b",
    payload: Buffer.from(JSON.stringify(payload)),
    timestampedMs: 0,
  };
  return {
    deliveryId: 1,
    claimId: 1,
    attempt: 1,
    failures: 0,
    event,
    subscription: { subscriptionId, settings: { filter } },
  } as unknown as Claim;
}

const only = (country: number): Schemata => ({ properties: { country: { const: country } } });
const properties = (count: number): Schemata => ({
  properties: Object.fromEntries(Array.from({ length: count }, (_, at) => [`p${at}`, { type: "string" }])),
});
const patterns = (count: number): Schemata => ({
  anyOf: Array.from({ length: count }, (_, at) => ({ pattern: `^(a|b${at}){1,9}x$` })),
});

/** Each compilation of it is told in the log. */
const UNUSABLE: Schemata = { properties: { a: { pattern: "(" } } };

function compiledIn(rounds: number, subscriptions: number, keptBytes: number): number {
  let compiled = 0;
  const logger = { ...silentLogger, error: () => (compiled += 1) };
  const filters = new Filters({ logger, random, keptBytes });
  for (let round = 0; round < rounds; round++) {
    for (let id = 1; id <= subscriptions; id++) filters.keepsBack(claim(id, UNUSABLE, {}));
  }
  return compiled;
}

test("filters are compiled once as long as all have room", () => {
  expect(compiledIn(20, 100, 100 * 1024)).toBe(100);
});

test("a few too many, asked in turn, cost a few compilations and not all", () => {
  const compiled = compiledIn(20, 105, 100 * 1024);
  expect(compiled).toBeGreaterThan(105);
  expect(compiled).toBeLessThan(105 + 20 * 25);
});

test("those that go and come again decide as before, and a changed one as it is now", () => {
  const filters = new Filters({ logger: silentLogger, random, keptBytes: 25 * 1024 });
  for (let asked = 0; asked < 200; asked++) {
    const [id, country] = [asked % 7, asked % 5];
    expect(filters.keepsBack(claim(id, only(id), { country })), `${asked}`).toBe(country !== id);
  }
  expect(filters.keepsBack(claim(1, only(2), { country: 1 }))).toBe(true);
  expect(filters.keepsBack(claim(1, only(2), { country: 2 }))).toBe(false);
});

const bytes = (schemata: Schemata): number => compileSchema(schemata).bytes;

test("what one takes grows with its properties and its patterns", () => {
  expect(bytes(properties(1))).toBeLessThan(12 * 1024);
  expect(bytes(properties(300))).toBeGreaterThan(4 * bytes(properties(1)));
  // Measured: 2.1 MiB.
  expect(bytes(patterns(60))).toBeGreaterThan(1.8 * 1024 * 1024);
  expect(bytes(patterns(60))).toBeLessThan(3 * 1024 * 1024);
});
