import { join } from "node:path";
import { expect, it } from "vitest";
import { SERVICE_EVENT_NAMES } from "../../src/domain/service-events.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { ensureServiceActions } from "../../src/store/libsql/catalog/actions.ts";
import { openLibsqlStore, type OpenOptions } from "../../src/store/libsql/open.ts";
import type { WriteCall } from "../../src/store/libsql/thread/protocol.ts";
import type { ServiceEventCounts } from "../../src/store/queue.ts";
import type { Store } from "../../src/store/store.ts";
import { claimRequest } from "../support/claim-request.ts";
import { writeOlderFile } from "../support/older-file.ts";
import { testOwner } from "./owner.ts";
import { rawSql } from "./processes.ts";
import { openFile } from "./open-file.ts";
import { useScratch } from "./scratch.ts";
import { call, commit, eventBatch, finished } from "./batches.ts";

const scratch = useScratch();
const NAME = "evreg.delivery.failed";

const open = (given: Partial<OpenOptions> = {}): Promise<Store> =>
  openLibsqlStore({ folder: scratch.path, owner: testOwner(), logger: silentLogger, ...given });

const OPERATOR = {
  application: "ops",
  handler: "https://ops.example/",
  maxRetries: 0,
  active: true,
  secret: "s",
};

it("the current schemas of evreg's events are in force once a file is open", async () => {
  const file = join(scratch.path, "evreg.db");
  await (await open()).close();
  rawSql(file, `UPDATE action_revision SET schemata = '{"type":"object"}' WHERE action_id = 1`);
  const store = await open();
  const first = (await store.catalog.listActions({})).find(({ rowid }) => rowid === 1);
  expect(first).toMatchObject({ revision: 2, schemata: { additionalProperties: false } });
  // What was recorded under the one before keeps its number.
  await store.close();
  expect(rawSql(file, "SELECT count(*) AS n FROM action_revision")).toEqual([
    { n: SERVICE_EVENT_NAMES.length + 1 },
  ]);
  await (await open()).close();
  expect(rawSql(file, "SELECT count(*) AS n FROM action_revision")).toEqual([
    { n: SERVICE_EVENT_NAMES.length + 1 },
  ]);
});

it("a user's older action with such a name stays the user's, and that event is not recorded", async () => {
  writeOlderFile(
    join(scratch.path, "evreg.db"),
    10,
    `INSERT INTO action (action, application, revision, created_ms) VALUES ('${NAME}', 'x', 1, 1), ('b', 'x', 1, 1)`,
    "INSERT INTO action_revision (action_id, revision, schemata, created_ms) VALUES (1, 1, '{}', 1), (2, 1, '{}', 1)",
  );
  const warnings: object[] = [];
  const told: ServiceEventCounts[] = [];
  const logger = { ...silentLogger, warn: (fields: object) => void warnings.push(fields) };
  const store = await open({ logger, onChange: (change) => void told.push(change.serviceEvents!) });
  expect(warnings).toEqual([{ actions: [NAME] }]);
  expect(await store.catalog.findAction(NAME)).toMatchObject({
    application: "x",
    isBuiltIn: false,
    schemata: {},
  });
  const record = { actionId: 1, revision: 1, payload: Buffer.from("{}") };
  expect(await store.events.record([record], 1)).toMatchObject([{ kind: "recorded" }]);

  await store.catalog.createSubscription({ ...OPERATOR, subscription: "own", action: NAME }, 1);
  await store.catalog.createSubscription(
    { ...OPERATOR, subscription: "gone", action: "evreg.subscription.deactivated" },
    1,
  );
  await store.catalog.createSubscription({ ...OPERATOR, subscription: "b", action: "b" }, 1);
  await store.events.record([{ ...record, actionId: 2 }], 1);
  const [claim] = (await store.queue.claim(claimRequest({ nowMs: 2 }))).claims;
  const { deliveryId, claimId } = claim!;
  await store.queue.finish(
    [{ deliveryId, claimId, startedAtMs: 2, durationMs: 1, statusCode: 410, ending: "gone" }],
    3,
  );
  const { events } = await store.events.list({ order: "asc", limit: 9, page: 1 });
  expect(events.map(({ action }) => action)).toEqual([NAME, "b", "evreg.subscription.deactivated"]);
  // Whoever opened the store hears of what was recorded.
  expect(told).toEqual([{ events: 1, deliveries: 1 }]);
  await store.close();
});

it("with no room for it nothing of the finish is done, and with room both", () => {
  const file = join(scratch.path, "full.db");
  const connection = openFile(file);
  connection.write((sql) => ensureServiceActions(sql, 1));
  const failures = 200;
  const payload = Buffer.from("{}");
  const actionId = SERVICE_EVENT_NAMES.length + 1;
  commit(connection, [
    call("catalog.createAction", { action: "a", application: "x", schemata: {} }, 1),
    call("catalog.createSubscription", { ...OPERATOR, subscription: "a", action: "a" }, 1),
    call("catalog.createSubscription", { ...OPERATOR, subscription: "watch", action: NAME }, 1),
  ]);
  const rows = Array.from({ length: failures }, (_, index) => [actionId, 1, 2 * index, 2]).flat();
  const bytes = Buffer.alloc(2 * failures, payload);
  commit(connection, [["events.record", eventBatch({ nowMs: 1, atomic: true, rows })]], bytes);
  connection.write((sql) =>
    sql.run(
      "INSERT INTO lease (delivery_id, claim_id, claimed_ms, until_ms) SELECT rowid, rowid, 1, 9 FROM delivery",
    ),
  );
  const results = Array.from({ length: failures }, (_, index) => {
    const [deliveryId, ending] = [index + 1, "failed"] as const;
    return { deliveryId, claimId: deliveryId, statusCode: 500, ending };
  });
  const calls = finished(results, 2);
  const finish = calls.map((row): WriteCall => ["queue.finish", row]);
  const state = (): object => ({
    ...connection.read.first<object>(
      `SELECT (SELECT count(*) FROM lease) AS leased, (SELECT count(*) FROM attempt) AS attempts,
        (SELECT count(*) FROM delivery WHERE state = 3) AS failed, (SELECT count(*) FROM event) AS events,
        (SELECT count(*) FROM delivery) AS deliveries`,
    ),
  });
  const before = state();
  expect(before).toEqual({ leased: 200, attempts: 0, failed: 0, events: 200, deliveries: 200 });
  const pages = connection.read.first<{ page_count: number }>("PRAGMA page_count")!.page_count;
  // There is room for the attempts, and not for the events about them.
  connection.read.run(`PRAGMA max_page_count = ${pages + 8}`);
  expect(() => commit(connection, finish)).toThrow(expect.objectContaining({ kind: "full" }));
  expect(state()).toEqual(before);

  connection.read.run("PRAGMA max_page_count = 1000000");
  const { outcomes, work } = commit(connection, finish);
  expect(outcomes).toEqual(results.map(() => ({ ok: { kind: "stored", state: "failed" } })));
  expect(work.changes).toEqual([{ serviceEvents: { events: failures, deliveries: failures } }]);
  expect(state()).toEqual({ leased: 0, attempts: 200, failed: 200, events: 400, deliveries: 400 });
  connection.close();
});
