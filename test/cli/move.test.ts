import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { Client } from "pg";
import { afterAll, beforeAll, expect, test } from "vitest";
import { commandLine } from "../support/command-line.ts";
import { type Cluster, sharedCluster } from "../support/postgres.ts";
import { startCommand, temporaryFolder } from "../support/program.ts";
import { until } from "../support/until.ts";

const folder = temporaryFolder();
const { run, json } = commandLine(folder.path, {});
let cluster: Cluster;
/** With a password, which nobody asks for and nothing may show. */
let url: string;

beforeAll(async () => {
  cluster = await sharedCluster();
  url = cluster.url(await cluster.newDatabase()).replace("postgres@", "postgres:s3cret@");
  for (const name of ["data", "other"]) {
    mkdirSync(join(folder.path, name), { mode: 0o700 });
    const create = ["actions", "create", "order.created", "--application", "shop", "--schema", "-"];
    await run([...create, "--data", name], { input: "{}" });
  }
});

afterAll(() => folder.remove());

test.each([
  [["--from", "data"], "--to: name a folder, or the address of a database in EVREG_DATABASE_URL."],
  [["--from", "data", "--to", "back"], "A move leads from a data folder to a database, or back."],
  [["--from", "postgres://a/b", "--to", "postgres://c/d"], "A move leads from a data folder to a database"],
  [["--from", "data", "--to", "postgres://["], "--to: must be an address such as postgres:"],
])("a move %j is refused", async (words, message) => {
  const outcome = await run(["move", ...words]);
  expect(outcome).toMatchObject({ code: 2, stdout: "", stderr: expect.stringContaining(message) as string });
});

test("a move says what is done, what to do next, and how long it took", async () => {
  const names = ["move", "--from", "data"];
  await run("backup first.db --data data");
  const env = { EVREG_DATABASE_URL: url };
  const first = await run("move --from first.db", { env });
  expect(first.code).toBe(0);
  expect(first.stdout).toMatch(/^From +first\.db\nTo +postgres:\/\/postgres@127\.0\.0\.1:\d+\/\w+\n/);
  expect(first.stdout).toMatch(/^Finished +no$/m);
  expect(first.stderr).toMatch(
    /Stop the server, and run: evreg move --from FOLDER --to postgres:\/\/postgres@/,
  );

  const second = await run([...names, "--to", url]);
  expect(second.code).toBe(0);
  expect(second.stdout).toMatch(/^Finished +yes$/m);
  expect(second.stdout).toMatch(/^Copied now +\d$/m);
  expect(second.stderr).toMatch(/That took \d+\.\d s, for which nothing could be published\./);
  expect(second.stderr).toMatch(/is kept as data\/evreg\.db\.moved-\w+, and no server opens it/);

  const again = await run([...names, "--to", url]);
  expect(again).toMatchObject({ code: 5, stderr: expect.stringContaining("moved away already") as string });
  const read = await run("actions list --data data");
  expect(read).toMatchObject({ code: 1, stderr: expect.stringContaining("moved into a database") as string });

  const looked = await run("doctor --data data");
  expect(looked.stdout).toMatch(/^problem +data +The data of the folder .* were moved into a database/m);
  expect(looked.stdout).not.toContain("0 bytes");

  const back = await run("move --to back --json", { env });
  expect(back.code).toBe(0);
  const { data } = JSON.parse(back.stdout) as { data: object };
  expect(data).toMatchObject({
    to: "back",
    finished: true,
    events: 0,
    kept: expect.stringMatching(/^moved_evreg_/) as string,
  });
  for (const { stdout, stderr } of [first, second, again, back])
    expect(stdout + stderr).not.toContain("s3cret");
  const { data: actions } = await json<readonly object[]>("actions list --data back");
  expect(actions).toContainEqual(expect.objectContaining({ action: "order.created" }));
});

test("a move that is interrupted says so, and goes on with the next", async () => {
  const held = cluster.url(await cluster.newDatabase());
  await run("backup other.db --data other");
  await run(["move", "--from", "other.db", "--to", held]);
  // The move waits there for as long as this holds a table.
  const [holder, watcher] = [new Client(held), new Client(held)];
  await Promise.all([holder.connect(), watcher.connect()]);
  await holder.query("BEGIN; LOCK TABLE arriving_evreg.action");
  const { child, ended } = startCommand(["move", "--from", "other", "--to", held], { cwd: folder.path });
  const waiting =
    "SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
  await until("it to wait", async () => (await watcher.query<{ n: number }>(waiting)).rows[0]!.n === 1);
  child.kill("SIGINT");
  // The signal is there long before the last table is.
  await holder.query("ROLLBACK");
  await Promise.all([holder.end(), watcher.end()]);
  expect(await ended).toMatchObject({
    code: 130,
    stderr: "Interrupted. The same command goes on from here.\n",
  });
  expect(await run(["move", "--from", "other", "--to", held])).toMatchObject({ code: 0 });
});
