import { afterEach, beforeEach, expect, test } from "vitest";
import type { RevisionBreak, Schemata } from "../../src/domain/action.ts";
import { compare } from "../../src/schema/compatibility/compare.ts";
import { breaksOf } from "../../src/service/action-update.ts";
import { ValidationThread } from "../../src/service/validation-thread.ts";
import { type LocalService, openLocalService } from "../support/local-service.ts";

let local: LocalService;
beforeEach(async () => {
  local = await openLocalService();
});
afterEach(() => local.close());

const ALL = { compatibility: "full", compatibility_against: "all" } as const;

/** An object with these properties. */
function having(...names: string[]): Schemata {
  return { type: "object", properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])) };
}

/** An action that has had these schemas, oldest first. */
async function withHistory([first, ...others]: readonly Schemata[]): Promise<void> {
  const rule = { ...ALL, compatibility: "none" } as const;
  await local.store.catalog.createAction(
    { action: "a.b", application: "shop", schemata: first!, ...rule },
    0,
  );
  for (const [index, schemata] of others.entries()) {
    await local.store.catalog.reviseAction(
      {
        action: "a.b",
        schemata,
        expectedVersion: index + 1,
        admission: { compatibility: "none", breaks: 0 },
      },
      0,
    );
  }
}

/** What a schema breaks, and how many revisions it was compared with to know. */
async function judge(
  next: Schemata,
  stepsOverAll?: number,
  rule: Parameters<typeof breaksOf>[4] = ALL,
): Promise<{ breaks: readonly RevisionBreak[]; comparisons: number }> {
  let comparisons = 0;
  const counted: Parameters<typeof breaksOf>[1] = (older, newer, mode) => {
    comparisons += 1;
    return Promise.resolve(compare(older, newer, { mode }));
  };
  const stored = (await local.store.catalog.findAction("a.b"))!;
  const breaks = await breaksOf(local.store.catalog, counted, stored, next, rule, stepsOverAll);
  return { breaks, comparisons };
}

test("a break with several revisions is named once, with the newest of them", async () => {
  const [one, two] = [having("a"), having("b")];
  await withHistory([one, two, one, two, two, one]);
  const { breaks } = await judge(having("c"));
  expect(breaks.map(({ revision, pointer }) => `${revision} ${pointer}`)).toEqual([
    "6 /properties/a",
    "5 /properties/b",
  ]);
  expect(breaks.map(({ message }) => message)).toEqual([
    expect.stringMatching(/^The property "a" is gone\./),
    expect.stringMatching(/^Against revision 5: The property "b" is gone\./),
  ]);
});

const status = (...values: string[]): Schemata => ({
  type: "object",
  properties: { status: { enum: values } },
});

test("what the last revision still has is suggested to be kept, also against older ones", async () => {
  await withHistory([status("a", "b"), { type: "object" }, having("status"), status("a", "b")]);
  const { breaks } = await judge(status("a"));
  expect(breaks[0]).toMatchObject({ revision: 4, remedy: expect.stringContaining("Leave enum as it is") });
  expect(breaks[0]?.message).toMatch(/^status must/);
});

test("the thread compares", async () => {
  const thread = new ValidationThread(local.clock);
  const task = { older: having("a"), newer: having("b"), mode: "full" } as const;
  const { breaks } = await thread.make("comparison", task, local);
  expect(breaks.map(({ pointer }) => pointer)).toEqual(["/properties/a"]);
  await local.clock.advance(10_000);
});

test("when the step budget is used up, each side lists the revisions that were not compared", async () => {
  await withHistory([having("a"), having("b"), having("a", "b"), having()]);
  const { breaks, comparisons } = await judge(having("c"), 1);
  expect(comparisons).toBe(1);
  const untold = { revision: 3, pointer: "", certainty: "cannot_prove" };
  expect(breaks).toMatchObject([
    { ...untold, side: "producer", message: expect.stringContaining("Revisions 1 to 3 were not compared") },
    { ...untold, side: "consumer", message: expect.stringContaining("It cannot be proven") },
  ]);
  const consumers = { ...ALL, compatibility: "consumer" } as const;
  expect((await judge(having("c"), 1, consumers)).breaks.map(({ side }) => side)).toEqual(["consumer"]);
  // The last revision alone is always compared.
  expect((await judge(having("c"), 1, { ...ALL, compatibility_against: "last" })).breaks).toEqual([]);
});

test("the step budget ends at the same revision each time", async () => {
  await withHistory([having("first"), ...Array.from({ length: 4 }, (_, index) => having(`p${index}`))]);
  const revisionsLeft = async (steps: number) =>
    (await judge(having("c"), steps)).breaks.find(({ pointer }) => pointer === "")?.message;
  const [once, again] = [await revisionsLeft(4_800), await revisionsLeft(4_800)];
  expect(once).toMatch(/^Revision 1 was not compared|^Revisions 1 to [23] were not compared/);
  expect(again).toBe(once);
  expect(await revisionsLeft(100_000)).toBeUndefined();
});

test("after a thousand breaks older revisions are not compared, and the answer says so", async () => {
  const own = (revision: number) =>
    having(...Array.from({ length: 100 }, (_, index) => `r${revision}-${index}`));
  await withHistory(Array.from({ length: 12 }, (_, index) => own(index + 1)));
  const { breaks, comparisons } = await judge(having("c"));
  expect(comparisons).toBe(10);
  expect(breaks).toHaveLength(1_002);
  expect(breaks.slice(-2)).toMatchObject([
    { revision: 2, side: "producer", message: expect.stringMatching(/^Revisions 1 to 2 .* 1,000 breaks/) },
    { revision: 2, side: "consumer" },
  ]);
});
