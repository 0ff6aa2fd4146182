import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { EventSelection } from "../../src/store/events.ts";
import { openPostgresStore } from "../../src/store/postgres/open.ts";
import { BLOCK_SIZES, blocksOf, rangeOf } from "../../src/store/sql/events/counts.ts";
import type { Store } from "../../src/store/store.ts";
import { fileSql } from "../support/file-sql.ts";
import { sharedCluster } from "../support/postgres.ts";
import { newAction, openStore } from "./opened-store.ts";
import { testOwner } from "./owner.ts";
import { useScratch } from "./scratch.ts";

const [LARGE, SMALL] = BLOCK_SIZES;
const scratch = useScratch();

it.each([
  [0, -1, []],
  [5, 5, [[1, 5, 5]]],
  [0, SMALL - 1, [[SMALL, 0, 0]]],
  [1, SMALL - 1, [[1, 1, SMALL - 1]]],
  [0, LARGE - 1, [[LARGE, 0, 0]]],
  [
    SMALL - 1,
    3 * LARGE + SMALL,
    [
      [1, SMALL - 1, SMALL - 1],
      [SMALL, 1, LARGE / SMALL - 1],
      [LARGE, 1, 2],
      [SMALL, (3 * LARGE) / SMALL, (3 * LARGE) / SMALL],
      [1, 3 * LARGE + SMALL, 3 * LARGE + SMALL],
    ],
  ],
])("from %d to %d are blocks, each as large as fits", (low, high, expected) => {
  const runs = blocksOf({ low, high });
  expect(runs.map(({ size, first, last }) => [size, first, last])).toEqual(expected);
  let next = low;
  for (const range of runs.map(rangeOf)) {
    expect(range.low).toBe(next);
    next = range.high + 1;
  }
  expect(next).toBe(high + 1);
});

/** A store, and how it opens once its next event has another number. */
interface Numbered {
  readonly store: Store;
  readonly after: (last: number) => Promise<Store>;
}

async function inFile(): Promise<Numbered> {
  const store = await openStore(scratch.path);
  const after = async (last: number): Promise<Store> => {
    fileSql(
      join(scratch.path, "evreg.db"),
      `UPDATE sqlite_sequence SET seq = ${last} WHERE name = 'event'`,
      "SELECT 1",
    );
    return openStore(scratch.path);
  };
  return { store, after };
}

async function inDatabase(): Promise<Numbered> {
  const cluster = await sharedCluster();
  const database = await cluster.emptyStore();
  const open = () => openPostgresStore({ url: cluster.url(database), owner: testOwner() });
  const after = async (last: number): Promise<Store> => {
    await cluster.run(`UPDATE evreg.last_number SET seq = ${last} WHERE name = 'event'`, database);
    return open();
  };
  return { store: await open(), after };
}

describe.each([
  ["in a file", inFile],
  ["in a database", inDatabase],
])("%s", (_, make) => {
  it("lists over several large blocks are exact, also once some events were removed", async () => {
    const { store: made, after } = await make();
    let store = made;
    const actions = [];
    for (const name of ["a.one", "a.two", "b.one"]) actions.push(await newAction(store, name));
    const all: { readonly rowid: number; readonly action: string }[] = [];
    // An event's time is its place among all.
    for (const last of [LARGE - 60, 2 * LARGE - 1, 5 * LARGE + SMALL - 60]) {
      await store.close();
      store = await after(last);
      for (let n = 0; n < 120; n += 1) {
        const { rowid: actionId, revision, action } = actions[(n * n) % 3]!;
        const event = { actionId, revision, payload: Buffer.from("{}") };
        const [outcome] = await store.events.record([event], all.length);
        all.push({ rowid: (outcome as { rowid: number }).rowid, action });
      }
    }
    const filters: readonly (readonly [Partial<EventSelection>, RegExp])[] = [
      [{}, /./],
      [{ action: "a.one" }, /^a\.one$/],
      [{ action: "a.*" }, /^a\./],
    ];
    const check = async (from: number): Promise<void> => {
      for (const [filter, pattern] of filters) {
        for (const time of [{}, { fromMs: 30, toMs: 300 }, { fromMs: from }] as Partial<EventSelection>[]) {
          const { fromMs = 0, toMs } = time;
          const wanted = all
            .slice(Math.max(from, fromMs), toMs)
            .filter(({ action }) => pattern.test(action))
            .map(({ rowid }) => rowid);
          for (const order of ["asc", "desc"] as const) {
            const ordered = order === "asc" ? wanted : wanted.toReversed();
            for (const page of [1, 2, 4, 7, 12]) {
              const query = { ...filter, ...time, order, limit: 20, page };
              const { events, total } = await store.events.list(query);
              expect(total).toBe(wanted.length);
              expect(events.map(({ rowid }) => rowid)).toEqual(ordered.slice(20 * (page - 1), 20 * page));
            }
          }
        }
      }
    };
    await check(0);
    const { events: removed } = await store.events.removeExpired({ beforeMs: 100 });
    expect(removed).toBe(100);
    await check(100);
    await store.close();
  });
});
