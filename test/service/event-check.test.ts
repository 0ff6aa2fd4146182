import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { CHECK_LIMITS, type Schemata } from "../../src/domain/action.ts";
import { SEARCH_LIMITS } from "../../src/domain/event.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { PayloadValidator } from "../../src/service/payload-checks.ts";
import { SchemaChecks } from "../../src/service/schema-checks.ts";
import { StoredEvents } from "../../src/service/stored-events.ts";
import { ValidationThread } from "../../src/service/validation-thread.ts";
import type { ValidationCaller } from "../../src/schema/validate/compile.ts";
import type { EventStore } from "../../src/store/events.ts";
import { type LocalService, openLocalService } from "../support/local-service.ts";
import { publishMany } from "../support/publish-many.ts";
import { turnsDuring } from "../support/turns.ts";

const SCHEMA = { type: "object", required: ["id"] };
const [somebody, another] = [{}, {}];
const asked = (maxEvents: number) => ({ action: "a.b", schemata: SCHEMA, maxEvents });

let local: LocalService;
beforeEach(async () => {
  local = await openLocalService();
  await local.evreg.actions.create({ action: "a.b", application: "shop", schemata: { type: "object" } });
});
afterEach(async () => {
  vi.restoreAllMocks();
  await local.close();
});

async function publish(count: number, payload: object): Promise<void> {
  await publishMany(local.evreg, count, { action: "a.b", payload: RawJson.fromValue(payload) });
}

/** The events of the real store, with something done at each read of events. */
function reading(noticed: (limit: number) => unknown): Pick<EventStore, "list"> {
  return {
    async list(query) {
      await noticed(query.limit);
      return local.store.events.list(query);
    },
  };
}

function storedEvents(events: Pick<EventStore, "list">): StoredEvents {
  const { clock } = local;
  const payloads = new PayloadValidator(new ValidationThread(clock));
  return new StoredEvents({ events, clock, payloads, schemaChecks: new SchemaChecks() });
}

/** Lets no time really pass; only the clock of the test ends walks. */
function stopRealTime(): void {
  vi.spyOn(performance, "now").mockReturnValue(0);
}

test("a check ends at its time limit and reports how far it came; the ones behind it are told to retry", async () => {
  stopRealTime();
  await publish(500, {});
  const slow = reading(() => local.clock.advance(CHECK_LIMITS.replayMs / 2));
  const checks = storedEvents(slow);
  const [first, second] = await Promise.allSettled([
    checks.check(asked(500), somebody),
    checks.check(asked(500), somebody),
  ]);
  expect(first).toMatchObject({ value: { checked: 200, failed: 200 } });
  expect(second).toMatchObject({ reason: { code: "unavailable" } });
  expect(await checks.check(asked(100), somebody)).toMatchObject({ checked: 100 });
});

test("callers are served side by side, so that none runs out of time by another's checks", async () => {
  stopRealTime();
  await publish(500, {});
  let passing: Promise<unknown> = Promise.resolve();
  // Reads that are asked for together take their time one after the other.
  const slow = reading(() => (passing = passing.then(() => local.clock.advance(CHECK_LIMITS.replayMs / 5))));
  const checks = storedEvents(slow);
  const [mine, more, theirs] = await Promise.allSettled([
    checks.check(asked(500), somebody),
    checks.check(asked(500), somebody),
    checks.check(asked(200), another),
  ]);
  expect(theirs).toMatchObject({ value: { checked: 200 } });
  expect(mine).toMatchObject({ value: { checked: expect.toSatisfy((count: number) => count < 500) } });
  expect(more).toMatchObject({ reason: { code: "unavailable" } });
});

test("a check ends with its caller, and so do that caller's waiting ones", async () => {
  await publish(500, {});
  const gone = new AbortController();
  let reads = 0;
  const events = reading(() => {
    reads += 1;
    if (reads === 2) gone.abort();
  });
  const checks = storedEvents(events);
  const run = () => checks.check(asked(500), somebody, gone.signal);
  for (const check of await Promise.allSettled([run(), run()])) {
    expect(check).toMatchObject({ reason: gone.signal.reason });
  }
  expect(reads).toBe(2);
  expect(await checks.check(asked(100), somebody)).toMatchObject({ checked: 100 });
});

test("a check of many events lets other work run", async () => {
  // Each takes some time: its names are all compared with a pattern.
  const names = Object.fromEntries(Array.from({ length: 400 }, (_, index) => [`name${index}`, index]));
  await publish(1_000, names);
  const schemata = { type: "object", patternProperties: { "^name[0-9]*x?$": { type: "integer" } } };
  const turns = await turnsDuring(async () => {
    const { data } = await local.evreg.actions.check("a.b", { schemata, mode: "none", replay: 1_000 });
    expect(data.replay).toEqual({ checked: 1_000, failed: 0, failures: [] });
  });
  // Ten reads alone would give some tens.
  expect(turns).toBeGreaterThan(30);
});

const costly = (branches: readonly Schemata[]) => ({
  properties: { list: { items: { allOf: branches } } },
});

test("an event may take as many steps as publishing it, whatever its schema", async () => {
  const list = Array.from({ length: 3_000 }, (_, index) => index);
  await publish(1, { list });
  // The whole takes some millions of steps, and the first 50 schemas some hundred thousands.
  const bounds = Array.from({ length: 450 }, (_, index) => ({ minimum: -index, type: ["number", "string"] }));
  const check = async (schemata: Schemata) => {
    const { data } = await local.evreg.actions.check("a.b", { schemata, mode: "none", replay: 1 });
    return data.replay;
  };
  expect(await check(costly(bounds.slice(0, 50)))).toEqual({ checked: 1, failed: 0, failures: [] });
  const tooCostly = costly(bounds);
  const message = expect.stringMatching(
    /^takes more than 2,\d+,\d+ steps to check against its schema$/,
  ) as string;
  expect(await check(tooCostly)).toMatchObject({ checked: 1, failed: 1, failures: [{ field: "", message }] });
  await local.evreg.actions.create({ action: "a.c", application: "shop", schemata: tooCostly });
  const item = { action: "a.c", payload: RawJson.fromValue({ list }) };
  await expect(local.evreg.events.publish(item)).rejects.toMatchObject({ details: { message } });
});

/** Of no certain text, so that the store leaves out no event. */
const WHERE = { minProperties: 1 };

/** Searches where the check of the `stuckAt`-th event lasts until it is interrupted, and a promise of its beginning. */
function searchesStuckAt(stuckAt: number): { searches: StoredEvents; begun: Promise<void> } {
  const { clock } = local;
  const { promise: begun, resolve } = Promise.withResolvers<void>();
  let checks = 0;
  const payloads = {
    failureOf: () => undefined,
    conforms(_candidate: unknown, _payload: RawJson, { gone }: ValidationCaller) {
      checks += 1;
      if (checks < stuckAt) return false;
      resolve();
      return new Promise<boolean>((_resolve, reject) => {
        gone!.addEventListener("abort", () => reject(gone!.reason as Error));
      });
    },
  };
  const { events } = local.store;
  const schemaChecks = new SchemaChecks();
  return { searches: new StoredEvents({ events, clock, payloads, schemaChecks }), begun };
}

test("a search whose check lasts too long answers at its time limit with how far it came", async () => {
  await publish(500, {});
  const { searches, begun } = searchesStuckAt(101);
  const found = searches.search({ where: WHERE, order: "asc", limit: 10 }, somebody);
  await begun;
  await local.clock.advance(SEARCH_LIMITS.searchMs);
  expect(await found).toMatchObject({ events: [], searched: 100, next: 100, total: 500 });
});

test("a search that decided on no event in its time is to be tried again", async () => {
  await publish(5, {});
  const { searches, begun } = searchesStuckAt(1);
  const found = searches.search({ where: WHERE, order: "asc", limit: 10 }, somebody);
  const refused = expect(found).rejects.toMatchObject({ code: "unavailable" });
  await begun;
  await local.clock.advance(SEARCH_LIMITS.searchMs);
  await refused;
});

test("a search that lasts too long ends when its caller leaves", async () => {
  await publish(5, {});
  const { searches, begun } = searchesStuckAt(3);
  const gone = new AbortController();
  const found = searches.search({ where: WHERE, order: "asc", limit: 10 }, somebody, gone.signal);
  const refused = expect(found).rejects.toThrow("left");
  await begun;
  gone.abort(new Error("left"));
  await refused;
});
