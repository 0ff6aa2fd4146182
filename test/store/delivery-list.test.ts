import { join } from "node:path";
import { expect, it } from "vitest";
import { DELIVERY_STATUSES } from "../../src/domain/delivery.ts";
import { BACKLOG_CAUSES } from "../../src/domain/stats/stats.ts";
import type { DeliverySelection } from "../../src/store/queue.ts";
import { createAction } from "../../src/store/libsql/catalog/actions.ts";
import { createSubscription, updateSubscription } from "../../src/store/libsql/catalog/subscriptions.ts";
import { listDeliveries } from "../../src/store/libsql/queue/delivery-list.ts";
import type { WriteConnection } from "../../src/store/libsql/thread/connection.ts";
import { openFile } from "./open-file.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const NOW = 1_000;
const DELIVERIES = 600;

/** Deliveries of all states to active, paused, deleted, ordered and keyed subscriptions, some of them leased. */
function filled(): WriteConnection {
  const connection = openFile(join(scratch.path, "one.db"));
  connection.write((sql) => {
    for (const action of ["a", "b"]) createAction(sql, { action, application: action, schemata: {} }, 1);
    const common = { handler: "h", maxRetries: 1, secret: "s" };
    for (let id = 1; id <= 6; id += 1) {
      const action = id % 2 === 0 ? "a" : "b";
      const names = { application: action, subscription: `s${id}`, action };
      createSubscription(sql, { ...common, ...names, active: id !== 3 }, 1);
    }
    updateSubscription(sql, 4, { settings: { ordered: { key: "/k" }, on_exhausted: "block" } }, 1);
    sql.run("UPDATE subscription SET deleted_ms = 5 WHERE rowid = 6");
    const series = `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${DELIVERIES})`;
    sql.run(
      `${series} INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
        SELECT n, 1 + n % 2, 1, n, x'7b7d' FROM n`,
    );
    // Of state 0, 2, 3 or 4, and in the order by key 0 or 5.
    sql.run(
      `${series} INSERT INTO delivery (rowid, event_id, subscription_id, created_ms, state, due_ms, failures, key, finished_ms)
        SELECT n, n, 1 + n % 6, n, state, iif(state = 0, n * 37 % 2000, NULL), iif(n % 7 = 0, 2, 0),
          iif(keyed, n / 18 % 4, NULL), iif(state IN (0, 5), NULL, 9)
        FROM (SELECT n, n % 6 = 3 AS keyed, CASE WHEN n % 6 = 3 THEN iif(n <= 72, 0, 5) ELSE (n * 5 % 11 % 4) + (n * 5 % 11 % 4 > 0) END AS state
          FROM n)`,
    );
    sql.run(
      `INSERT INTO lease (delivery_id, claim_id, claimed_ms, until_ms)
        SELECT rowid, 1, 700, 9000 FROM delivery WHERE state = 0 AND rowid % 5 = 0`,
    );
  });
  return connection;
}

it("a list is the same whatever index leads to it, and however many parts it is read in", () => {
  const connection = filled();
  const all: Omit<DeliverySelection, "limit">[] = [{}, ...DELIVERY_STATUSES.map((status) => ({ status }))];
  for (const name of BACKLOG_CAUSES) all.push({ cause: { name, nowMs: NOW } });
  const narrower = [
    {},
    { subscription: 4 },
    { subscription: 1 },
    { action: "a" },
    { applications: ["b"] },
    { event: 9 },
  ];
  let found = 0;
  for (const query of all.flatMap((one) =>
    narrower.map((other) => Object.assign({ limit: 100 }, one, other)),
  )) {
    const walked = { lookedAt: 100_000, gathered: 0 };
    const whole = listDeliveries(connection.read, query, walked);
    expect(whole.rest).toBeUndefined();
    const rowids = whole.items.map(({ rowid }) => rowid);
    expect(rowids).toEqual(rowids.toSorted((one, other) => other - one));
    found += rowids.length;
    for (const extent of [
      { lookedAt: 100_000, gathered: 100_000 },
      { lookedAt: 7, gathered: 0 },
      { lookedAt: 7, gathered: 100_000 },
    ]) {
      const inParts: number[] = [];
      for (let rest: DeliverySelection | undefined = query; rest !== undefined;) {
        const part = listDeliveries(connection.read, rest, extent);
        inParts.push(...part.items.map(({ rowid }) => rowid));
        ({ rest } = part);
      }
      expect({ query, inParts }).toEqual({ query, inParts: rowids });
    }
  }
  expect(found).toBeGreaterThan(1_000);
  connection.close();
});
