import { readFileSync, writeFileSync } from "node:fs";
import { afterAll, beforeAll, expect, it } from "vitest";
import { DatabaseConnection } from "../../src/store/postgres/connection.ts";
import { databaseFailure, isLost } from "../../src/store/postgres/failure.ts";
import { openPostgresStore } from "../../src/store/postgres/open.ts";
import { storeContract } from "../contract/store.ts";
import { type Cluster, sharedCluster } from "../support/postgres.ts";
import { ReusedStore } from "../support/reused-store.ts";
import { eventOf, newAction, subscriptionTo } from "./opened-store.ts";
import { testOwner } from "./owner.ts";

let cluster: Cluster;
let reused: ReusedStore;

beforeAll(async () => {
  cluster = await sharedCluster();
  reused = new ReusedStore(cluster);
});

afterAll(() => reused.end());

const remove = (): void => undefined;

async function openOwn() {
  const url = cluster.url(await cluster.emptyStore());
  const reopen = () => openPostgresStore({ url, owner: testOwner() });
  return { store: await reopen(), reopen, remove };
}

storeContract("PostgreSQL", openOwn, async () => ({ store: await reused.open(), remove }));

it("has the rowid at the end of each index, as the embedded engine has, which is walked in that order", async () => {
  const lacking = await cluster.query(
    `SELECT indexname FROM pg_indexes WHERE schemaname = 'evreg' AND indexdef LIKE 'CREATE INDEX%' AND indexdef !~ '[(, ]rowid\\)'
      AND tablename IN (SELECT table_name FROM information_schema.columns WHERE table_schema = 'evreg' AND column_name = 'rowid')`,
    await cluster.emptyStore(),
  );
  expect(lacking).toEqual([]);
});

it("says at once that a password is lacking, and keeps no connection", async () => {
  const name = await cluster.emptyStore();
  const [{ hba_file: file } = { hba_file: "" }] = await cluster.query<{ hba_file: string }>(
    "SHOW hba_file",
    name,
  );
  writeFileSync(file, `host all asked 127.0.0.1/32 scram-sha-256\n${readFileSync(file, "utf8")}`);
  await cluster.run("CREATE ROLE asked LOGIN PASSWORD 'known'; SELECT pg_reload_conf()", name);
  const url = cluster.url(name).replace("postgres@", "asked@");
  await expect(openPostgresStore({ url, owner: testOwner() })).rejects.toThrow(
    "the database refuses the password",
  );
  const connected =
    "SELECT pid FROM pg_stat_activity WHERE usename = 'asked' OR backend_type = 'client backend' AND usename IS NULL";
  await expect.poll(() => cluster.query(connected, name)).toEqual([]);
}, 10_000);

it("lists deliveries newest first, whatever PostgreSQL knows of its tables", async () => {
  const name = await cluster.emptyStore();
  const store = await openPostgresStore({ url: cluster.url(name), owner: testOwner() });
  const actions = await Promise.all(Array.from({ length: 9 }, (_, n) => newAction(store, `a.${n}`)));
  await store.catalog.createSubscription(subscriptionTo("*"), 1);
  const events = Array.from({ length: 90 }, (_, n) => eventOf(actions[n % 9]!.rowid));
  await store.events.record(events, 1);
  // It then takes them for so large that it begins with the actions.
  await cluster.run(
    `ANALYZE; UPDATE pg_class SET reltuples = reltuples * 10000
      WHERE oid IN ('evreg.event'::regclass, 'evreg.delivery'::regclass)`,
    name,
  );
  const listed = await store.queue.list({ action: "a.*", limit: 50 });
  expect(listed.map(({ rowid }) => rowid)).toEqual(Array.from({ length: 50 }, (_, n) => 90 - n));
  await store.close();
});

it("knows which subscriptions another node has changed once that is answered, and of no others", async () => {
  const { store: one, reopen } = await openOwn();
  const other = await reopen();
  const { action } = await newAction(one);
  const { rowid: id } = await one.catalog.createSubscription(subscriptionTo(action), 1);
  const token = await one.tokens.create({ name: "t", scopes: ["admin"], hash: "h" }, 1);
  const changes: readonly (readonly [() => Promise<unknown>, readonly number[]])[] = [
    [() => one.catalog.updateSubscription(id, { active: false }, 2), [id]],
    [() => one.catalog.rotateSecret(id, { secret: "r", overlapMs: 0 }, 2), [id]],
    [() => one.catalog.deleteSubscription(id, 2), [id]],
    [() => one.tokens.revoke(token.rowid, false, 2), []],
  ];
  for (const [change, changed] of changes) {
    await change();
    expect(other.node.takeChanged()).toEqual(changed);
  }
  for (const store of [one, other]) await store.close();
});

it("makes one connection for all who ask at once", async () => {
  const connection = new DatabaseConnection({ url: cluster.url("postgres"), statementTimeoutMs: 10_000 });
  const ask = () => connection.rows<{ pid: number }>("SELECT pg_backend_pid() AS pid");
  const [[one], [other]] = await Promise.all([ask(), ask()]);
  expect(one!.pid).toBe(other!.pid);
  await connection.close();
});

it("takes a connection for lost that was not made in time, or whose transaction stood still", () => {
  const undone = Object.assign(new Error("terminating connection"), { severity: "FATAL", code: "25P03" });
  for (const error of [new Error("timeout expired"), new Error("Query read timeout"), undone]) {
    expect(isLost(databaseFailure(error))).toBe(true);
  }
  expect(isLost(databaseFailure(new Error("a mistake in a statement")))).toBe(false);
});
