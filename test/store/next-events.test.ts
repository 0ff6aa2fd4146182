import { join } from "node:path";
import { expect, test } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import { testOwner } from "./owner.ts";
import { rawSql } from "./processes.ts";
import { useScratch } from "./scratch.ts";

const EVENTS = 100;
/** Farther apart than the rowids that are looked through at once. */
const APART = 5_000;

const scratch = useScratch();
const open = () => openLibsqlStore({ folder: scratch.path, owner: testOwner(), logger: silentLogger });

test("a page of rare events ends after a bounded search, with a place to go on from", async () => {
  const first = await open();
  for (const [action, application] of [
    ["a", "x"],
    ["b", "y"],
    ["c", "y"],
  ] as const) {
    await first.catalog.createAction({ action, application, schemata: {} }, 1);
  }
  await first.close();
  rawSql(
    join(scratch.path, "evreg.db"),
    `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${EVENTS})
      INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
      SELECT n * ${APART}, iif(n < ${EVENTS}, a.rowid, b.rowid), 1, 1, x'7b7d' FROM n
        JOIN action AS a ON a.action = 'a' JOIN action AS b ON b.action = 'b'`,
  );
  const store = await open();
  const query = { limit: 10, maxBytes: 1_000, applications: ["y"], payloads: false };
  const pages = [await store.events.next({ ...query, after: 0 })];
  expect(pages[0]).toMatchObject({ events: [], isFull: true });
  while (pages.at(-1)!.isFull) {
    const after = pages.at(-1)!.through;
    pages.push(await store.events.next({ ...query, after }));
    expect(pages.at(-1)!.through).toBeGreaterThan(after);
  }
  expect(pages.length).toBeGreaterThan(2);
  expect(pages.flatMap(({ events }) => events.map(({ rowid }) => rowid))).toEqual([EVENTS * APART]);
  await store.close();
});
