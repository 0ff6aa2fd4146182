import { existsSync, mkdirSync } from "node:fs";
import { beforeAll, expect, test } from "vitest";
import type { Finding } from "../../src/domain/operations.ts";
import { inLongForm, lengthOf } from "../faults/length.ts";
import { useFolder } from "../support/command-line.ts";
import { type Cluster, sharedCluster } from "../support/postgres.ts";
import { launchProgram, startProgram } from "../support/program.ts";
import { until } from "../support/until.ts";

// Several processes behind one address, as `evreg serve --nodes` starts them.

const { servers } = lengthOf("cli/nodes");
const { folder, at, run, expectEach } = useFolder();
let cluster: Cluster;
let database: string;

beforeAll(async () => {
  cluster = await sharedCluster();
  database = await cluster.newDatabase();
});

interface NodeRecord {
  readonly id: string;
  readonly pid: number;
}

const SERVING =
  "SELECT id, (owner::json->>'pid')::int AS pid FROM evreg.node WHERE ended IS NULL AND until > clock_timestamp()";

test("a data folder takes one process", async () => {
  await expectEach([
    ["serve --nodes 10000 --data .", 2, "", /--nodes: takes a number from 1 to 64, not 10000\./],
    ["serve --nodes 2 --data .", 2, "", /--nodes needs a database/],
  ]);
});

inLongForm(
  "several serve behind one address, are replaced one by one, and where one was killed",
  async () => {
    const env = { EVREG_DATABASE_URL: cluster.url(database) };
    const server = launchProgram(folder, ["--dev", "--nodes", `${servers}`], env);
    let log = "";
    server.child.stderr!.on("data", (chunk: Buffer) => (log += chunk.toString()));
    const url = await server.ready;
    const serving = (): Promise<readonly NodeRecord[]> => cluster.query<NodeRecord>(SERVING, database);
    // Without any that listens, the port that the system has chosen would be another one from then on.
    await until("two listen", () => log.split('"msg":"listening"').length === 3);
    const first = await serving();
    const listed = await run("nodes --json --data .");
    const { data } = JSON.parse(listed.stdout) as { data: readonly object[] };
    expect(data).toEqual(expect.arrayContaining(first.map((one) => expect.objectContaining(one) as object)));
    expect(data.filter((one) => "status" in one && one.status === "serving")).toHaveLength(2);
    expect(first.map(({ pid }) => pid)).not.toContain(server.child.pid);

    process.kill(first[0]!.pid, "SIGKILL");
    await until("another one is there instead", async () => {
      return (await serving()).some(({ id }) => first.every((one) => one.id !== id));
    });
    // Nobody waits for its lease to end.
    await cluster.run(
      `UPDATE evreg.node SET until = clock_timestamp() WHERE id = '${first[0]!.id}'`,
      database,
    );

    const before = await serving();
    server.child.kill("SIGHUP");
    const replaced = new AbortController();
    const answers: number[] = [];
    // Whoever comes meanwhile is answered by one of the others.
    const asking = (async () => {
      while (!replaced.signal.aborted) answers.push(await statusOf(`${url}/v1/actions`));
    })();
    await until("both are new", async () => {
      const now = await serving();
      return now.length >= 2 && now.every(({ id }) => before.every((one) => one.id !== id));
    });
    replaced.abort();
    await asking;
    expect(new Set(answers)).toEqual(new Set([200]));

    const { code, stderr } = await server.end("SIGTERM");
    expect(code).toBe(0);
    const lines = stderr.trim().split("\n");
    const listening = lines.map((line) => JSON.parse(line) as { pid?: number; msg: string });
    const pids = new Set(listening.filter(({ msg }) => msg === "listening").map(({ pid }) => pid));
    for (const { pid } of [...first, ...before]) expect(pids).toContain(pid);
    const [left] = await cluster.query<{ nodes: number }>(
      "SELECT count(*)::int AS nodes FROM evreg.node WHERE ended IS NULL AND until > clock_timestamp() + interval '3 s'",
      database,
    );
    expect(left!.nodes).toBe(0);
  },
);

test("the log of those that go on says which node is dead, and the folder of one that stopped where its data are", async () => {
  const shared = await cluster.newDatabase();
  const env = { EVREG_DATABASE_URL: cluster.url(shared) };
  const begin = (name: string) => {
    mkdirSync(at(name), { mode: 0o700 });
    return startProgram(at(name), ["--dev"], env);
  };
  const [killed, survivor] = [await begin("killed"), await begin("survivor")];
  const heldBy = async ({ child: { pid } }: typeof killed): Promise<number> => {
    const count = `SELECT count(*)::int AS n FROM evreg.shard JOIN evreg.node ON node.id = shard.node WHERE (owner::json->>'pid')::int = ${pid}`;
    return (await cluster.query<{ n: number }>(count, shared))[0]!.n;
  };
  const shared64 = async () => (await heldBy(killed)) === 64 && (await heldBy(survivor)) === 64;
  await until("both have shards", shared64);
  await killed.end("SIGKILL");
  await until("the other one has all", async () => {
    // As if it had been silent for as long as a lease lasts.
    await cluster.run(
      `UPDATE evreg.node SET until = clock_timestamp() WHERE ended IS NULL AND (owner::json->>'pid')::int = ${killed.child.pid}`,
      shared,
    );
    return (await heldBy(survivor)) === 128;
  });
  const { stderr } = await survivor.end("SIGTERM");
  const dead = String.raw`process ${killed.child.pid}\) has given no sign of life since 20\S+Z: its 64 shards go to`;
  expect(stderr).toMatch(new RegExp(dead));
  // The folder of one that has stopped says where its data are.
  const away =
    /^(?!.*0 bytes).*^problem +reach +The server of the data folder .* in the database 127\.0\.0\.1:/ms;
  await expectEach([
    ["nodes --data survivor", 0, new RegExp(String.raw`gone .*\(${killed.child.pid}\)`), undefined, { env }],
    ["doctor --data survivor", 1, away],
  ]);
  // With the database it starts there again.
  const again = await startProgram(at("survivor"), ["--dev"], env);
  expect((await again.end("SIGTERM")).code).toBe(0);
});

test("commands that only read make nothing in a database that is empty, and say so", async () => {
  const empty = await cluster.newDatabase();
  const env = { EVREG_DATABASE_URL: cluster.url(empty) };
  await expectEach([["nodes --data none", 3, "", /holds no data of evreg yet/, { env }]]);
  const [finding] = await findings(env);
  expect(finding).toMatchObject({ status: "problem", found: expect.stringContaining("holds no data") });
  expect(await cluster.query("SELECT FROM pg_namespace WHERE nspname = 'evreg'", empty)).toEqual([]);
});

test("a command on a database makes no data folder, and the doctor looks at the database without a server", async () => {
  const env = { EVREG_DATABASE_URL: cluster.url(await cluster.newDatabase()) };
  const place = "--data not-made";
  const create = `actions create order.created --application shop --schema - ${place}`;
  await expectEach([
    [create, 0, undefined, undefined, { env, input: "{}" }],
    [`whoami ${place}`, 0, /^On the data in +127\.0\.0\.1:\d+\/\w+$/m, undefined, { env }],
    [`doctor ${place}`, 1, /^(?!.*be written to)/s, undefined, { env }],
  ]);
  expect(existsSync(at("not-made"))).toBe(false);
  const found = await findings(env);
  const ofDatabase = ["database", "durability", "nodes", "settings"];
  expect(found.map(({ check }) => check)).toEqual(expect.arrayContaining([...ofDatabase, "backlog"]));
  expect(found.find(({ check }) => check === "nodes")).toMatchObject({
    status: "warning",
    found: "No node runs, so nothing is delivered.",
  });
  const nowhere = { EVREG_DATABASE_URL: "postgres://postgres@127.0.0.1:1/evreg" };
  const [away] = await findings(nowhere);
  expect(away).toMatchObject({ status: "problem", found: expect.stringContaining("cannot be reached") });
  await expectEach([[`events ${place}`, 6, "", /cannot be reached/, { env: nowhere }]]);
});

/** What the doctor says of a database by a folder that no server has. */
async function findings(env: Record<string, string>): Promise<readonly Finding[]> {
  const { stdout } = await run("doctor --json --data doctor", { env });
  return (JSON.parse(stdout) as { data: readonly Finding[] }).data;
}

/** By a connection of its own: one that is kept may be closed just as it is used again. */
async function statusOf(url: string): Promise<number> {
  return (await fetch(url, { headers: { connection: "close" } })).status;
}
