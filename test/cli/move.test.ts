import { Client } from "pg";
import { beforeAll, expect, test } from "vitest";
import { useFolder } from "../support/command-line.ts";
import { type Cluster, sharedCluster } from "../support/postgres.ts";
import { startCommand } from "../support/program.ts";
import { until } from "../support/until.ts";

const { folder, run, json, expectEach } = useFolder();
let cluster: Cluster;
/** With a password, which nobody asks for and nothing may show. */
let url: string;

beforeAll(async () => {
  cluster = await sharedCluster();
  url = cluster.url(await cluster.newDatabase()).replace("postgres@", "postgres:s3cret@");
  for (const name of ["data", "other"]) {
    const create = `actions create order.created --application shop --schema - --data ${name}`;
    await run(create, { input: "{}" });
  }
});

test("what is no move is refused", async () => {
  await expectEach([
    ["move --from data", 2, "", /--to: name a folder, or the address of a database in EVREG_DATABASE_URL\./],
    ["move --from data --to back", 2, "", /A move leads from a data folder to a database, or back\./],
    ["move --from postgres://a/b --to postgres://c/d", 2, "", /A move leads from a data folder to a data/],
    ["move --from data --to postgres://[", 2, "", /--to: must be an address such as postgres:/],
    ["move --from data --to postgres://a@127.0.0.1:1/b", 6, "", /the database cannot be reached/],
  ]);
});

test("a move says what is done, what to do next, and how long it took", async () => {
  const env = { EVREG_DATABASE_URL: url };
  const shown = String.raw`postgres://postgres@127\.0\.0\.1:\d+/\w+\n`;
  const first = new RegExp(`^From +first\\.db\nTo +${shown}(?:.*\n)*Finished +no$`, "m");
  const second = [
    String.raw`That took \d+\.\d s, for which nothing could be published\.[^]*`,
    String.raw`is kept as data/evreg\.db\.moved-\w+, and no server opens it`,
  ];
  const finished = /^Finished +yes\n(?:.*\n)*Copied now +\d$/m;
  const next = /Stop the server, and run: evreg move --from FOLDER --to postgres:\/\/postgres@/;
  const lost = /^(?!.*0 bytes).*^problem +reach +The data of the folder .* were moved into a database/ms;
  const kept = /"to":"back",.*"events":0,.*"finished":true,"kept":"moved_evreg_/;
  const outcomes = await expectEach([
    ["backup first.db --data data", 0],
    ["move --from first.db", 0, first, next, { env }],
    [`move --from data --to ${url}`, 0, finished, new RegExp(second.join(""))],
    [`move --from data --to ${url}`, 5, "", /moved away already/],
    ["actions list --data data", 1, "", /moved into a database/],
    ["doctor --data data", 1, lost],
    ["move --to back --json", 0, kept, undefined, { env }],
  ]);
  for (const { stdout, stderr } of outcomes) expect(stdout + stderr).not.toContain("s3cret");
  const { data: actions } = await json<readonly object[]>("actions list --data back");
  expect(actions).toContainEqual(expect.objectContaining({ action: "order.created" }));
});

test("a move that is interrupted says so, and goes on with the next", async () => {
  const held = cluster.url(await cluster.newDatabase());
  await expectEach([
    ["backup other.db --data other", 0],
    [`move --from other.db --to ${held}`, 0],
  ]);
  // The move waits there for as long as this holds a table.
  const [holder, watcher] = [new Client(held), new Client(held)];
  await Promise.all([holder.connect(), watcher.connect()]);
  await holder.query("BEGIN; LOCK TABLE arriving_evreg.action");
  const { child, ended } = startCommand(["move", "--from", "other", "--to", held], { cwd: folder });
  const waiting =
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
  await until("it to wait", async () => (await watcher.query<{ n: number }>(waiting)).rows[0]!.n === 1);
  child.kill("SIGINT");
  // The signal is there long before the last table is.
  await holder.query("ROLLBACK");
  await Promise.all([holder.end(), watcher.end()]);
  const stderr = "Interrupted. The same command goes on from here.\n";
  expect(await ended).toMatchObject({ code: 130, stderr });
  await expectEach([[`move --from other --to ${held}`, 0]]);
});
