import { join } from "node:path";
import { describe, expect, it } from "vitest";
import type { EventSelection } from "../../src/store/events.ts";
import { openPostgresStore } from "../../src/store/postgres/open.ts";
import { BLOCK } from "../../src/store/sql/events/counts.ts";
import type { Store } from "../../src/store/store.ts";
import { fileSql } from "../support/file-sql.ts";
import { sharedCluster } from "../support/postgres.ts";
import { openStore, useScratch } from "./opened-store.ts";
import { testOwner } from "./owner.ts";

const SECOND_MS = 1_000;
const scratch = useScratch();

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
  it("lists over several blocks are exact, also once some events were removed", async () => {
    const { store: made, after } = await make();
    let store = made;
    const actions = await Promise.all(
      ["a.one", "a.two", "b.one"].map((action) =>
        store.catalog.createAction({ action, application: action.slice(0, 1), schemata: {} }, 1),
      ),
    );
    const all: { readonly rowid: number; readonly action: string; readonly atMs: number }[] = [];
    // The clock is set back by two minutes before the last ones, so that those of two minutes are in two places.
    for (const last of [BLOCK - 60, 2 * BLOCK - 1, 5 * BLOCK + 100]) {
      await store.close();
      store = await after(last);
      const startMs = Math.min(all.length, 120) * SECOND_MS;
      if (all.length > 120) await store.queue.moveWaits(120 * SECOND_MS, startMs);
      const recorded = Array.from({ length: 120 }, async (__, n) => {
        const { rowid: actionId, revision, action } = actions[(n * n) % 3]!;
        const atMs = startMs + n * SECOND_MS;
        const [outcome] = await store.events.record(
          [{ actionId, revision, payload: Buffer.from("{}") }],
          atMs,
        );
        return { rowid: (outcome as { rowid: number }).rowid, action, atMs };
      });
      all.push(...(await Promise.all(recorded)));
    }
    const filters: readonly (readonly [Partial<EventSelection>, RegExp])[] = [
      [{}, /./],
      [{ action: "a.one" }, /^a\.one$/],
      [{ action: "a.*" }, /^a\./],
      [{ applications: ["a", "c"] }, /^a\./],
      [{ action: "b.one", applications: ["a"] }, /^$/],
    ];
    const check = async (from: number): Promise<void> => {
      for (const [filter, pattern] of filters) {
        for (const [fromMs, toMs] of [
          [0, undefined],
          [30 * SECOND_MS, 200 * SECOND_MS],
        ] as const) {
          const wanted = all
            .slice(from)
            .filter(({ action, atMs }) => pattern.test(action) && atMs >= fromMs && atMs < (toMs ?? Infinity))
            .map(({ rowid }) => rowid);
          const time = toMs === undefined ? {} : { fromMs, toMs };
          for (const order of ["asc", "desc"] as const) {
            const ordered = order === "asc" ? wanted : wanted.toReversed();
            const list = (given: Partial<EventSelection>) =>
              store.events.list({ ...filter, ...time, order, limit: 20, page: 1, ...given });
            for (const page of [1, 4, 12]) {
              const { events, total } = await list({ page });
              expect(total).toBe(wanted.length);
              expect(events.map(({ rowid }) => rowid)).toEqual(ordered.slice(20 * (page - 1), 20 * page));
            }
            const place = Math.floor(ordered.length / 2);
            const { events } = await list({ after: ordered[place] ?? 0 });
            expect(events.map(({ rowid }) => rowid)).toEqual(ordered.slice(place + 1, place + 21));
          }
        }
      }
    };
    await check(0);
    const { events: removed } = await store.events.removeExpired({ beforeMs: 100 * SECOND_MS });
    expect(removed).toBe(100);
    await check(100);
    await store.close();
  });
});
