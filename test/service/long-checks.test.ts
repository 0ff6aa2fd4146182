import { afterAll, beforeAll, expect, test } from "vitest";
import { RawJson } from "../../src/json/raw-json.ts";
import { type LocalService, openLocalService } from "../support/local-service.ts";

let local: LocalService;
beforeAll(async () => {
  local = await openLocalService();
  const { actions } = local.evreg;
  // Doubles with each level of the payload, until the steps end.
  const schemata = { properties: { a: { allOf: [{ $ref: "#" }, { $ref: "#" }] } } };
  await actions.create({ action: "long", application: "shop", schemata });
  await actions.create({ action: "short", application: "shop", schemata: { required: ["id"] } });
  for (const action of ["long", "short"]) await refusedIn(action, "{}".replace("}", `"id":0}`));
});
afterAll(() => local.close());

let turns = 0;

/** In which turn of the event loop from now a publish was over, whatever came of it. */
async function refusedIn(action: string, payload: string): Promise<number> {
  const before = turns;
  const item = { action, payload: RawJson.fromText(payload) };
  await local.evreg.events.publish(item).catch(() => undefined);
  return turns - before;
}

test("checks that take long come one in a turn of the event loop, and short ones together", async () => {
  const doubling = `${'{"a":'.repeat(40)}0${"}".repeat(40)}`;
  let isOver = false;
  const count = (): void => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  setImmediate(count);
  const long = await Promise.all([1, 2, 3].map(() => refusedIn("long", doubling)));
  expect(long[0]).toBe(0);
  expect(long[1]).toBeGreaterThan(0);
  expect(long[2]).toBeGreaterThan(long[1]!);
  await new Promise(setImmediate);
  expect(await Promise.all([1, 2, 3].map(() => refusedIn("short", "{}")))).toEqual([0, 0, 0]);
  isOver = true;
});
