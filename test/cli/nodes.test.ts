import { afterAll, beforeAll, expect, test } from "vitest";
import { runProgram, startProgram, temporaryFolder } from "../support/program.ts";
import { type Cluster, startCluster } from "../support/postgres.ts";
import { until } from "../support/until.ts";

// Several processes behind one address, as `evreg serve --nodes` starts them.

const folder = temporaryFolder();
let cluster: Cluster;

beforeAll(async () => {
  cluster = await startCluster();
  await cluster.run("CREATE DATABASE evreg");
});
afterAll(async () => {
  await cluster.stop();
  folder.remove();
});

interface NodeRecord {
  readonly id: string;
  readonly pid: number;
  readonly status: string;
}

test("a data folder takes one process", async () => {
  const refused = await runProgram(["serve", "--nodes", "2", "--data", folder.path]);
  expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining("--nodes needs a database") });
});

test("several serve behind one address, are started anew one by one, and again where one was killed", async () => {
  const env = { EVREG_DATABASE_URL: cluster.url("evreg") };
  const server = await startProgram(folder.path, ["--dev", "--nodes", "2"], env);
  const serving = async (): Promise<readonly NodeRecord[]> => {
    const found = await runProgram(["nodes", "--json", "--data", folder.path]);
    const { data } = JSON.parse(found.stdout) as { data: readonly NodeRecord[] };
    return data.filter(({ status }) => status === "serving");
  };
  const first = await untilTwo(serving);
  expect(first.map(({ pid }) => pid)).not.toContain(server.child.pid);

  process.kill(first[0]!.pid, "SIGKILL");
  await until("another one is there instead", async () => {
    return (await serving()).some(({ id }) => first.every((one) => one.id !== id));
  });

  const before = await serving();
  server.child.kill("SIGHUP");
  const replaced = new AbortController();
  const answers: number[] = [];
  // Whoever comes meanwhile is answered by one of the others.
  const asking = (async () => {
    while (!replaced.signal.aborted) answers.push(await statusOf(`${server.url}/v1/actions`));
  })();
  await until("both are new", async () => {
    const now = await serving();
    return now.length >= 2 && now.every(({ id }) => before.every((one) => one.id !== id));
  });
  replaced.abort();
  await asking;
  expect(new Set(answers)).toEqual(new Set([200]));

  expect((await server.end("SIGTERM")).code).toBe(0);
  const [left] = await cluster.query<{ nodes: number }>(
    "SELECT count(*)::int AS nodes FROM evreg.node WHERE ended IS NULL AND until > clock_timestamp() + interval '3 s'",
    "evreg",
  );
  expect(left!.nodes).toBe(0);
});

async function untilTwo(serving: () => Promise<readonly NodeRecord[]>): Promise<readonly NodeRecord[]> {
  let found: readonly NodeRecord[] = [];
  await until("two serve", async () => (found = await serving()).length === 2);
  return found;
}

/** By a connection of its own: one that is kept may be closed just as it is used again. */
async function statusOf(url: string): Promise<number> {
  return (await fetch(url, { headers: { connection: "close" } })).status;
}
