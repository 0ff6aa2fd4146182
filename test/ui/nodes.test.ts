import { afterAll, beforeAll, expect, test } from "vitest";
import { type Cluster, startCluster } from "../support/postgres.ts";
import { temporaryFolder } from "../support/program.ts";
import { serveHere, type TestServer } from "../support/server.ts";
import { until } from "../support/until.ts";
import { useWorld } from "./harness.ts";

// The page of one of two servers on a database.

const folder = temporaryFolder();
let cluster: Cluster;
let other: TestServer;
const serve = (data: string): Promise<TestServer> =>
  serveHere(data, { dev: true, changes: { database: { url: cluster.url("postgres") } } });
beforeAll(async () => {
  cluster = await startCluster();
});
afterAll(() => cluster.stop());
const world = useWorld({ serve });
beforeAll(async () => {
  other = await serve(folder.path);
});
afterAll(async () => {
  await other.stop();
  folder.remove();
});

test("the doctor shows the nodes while there are several", async () => {
  await until("both have their share", async () => {
    return (await world.evreg.nodes()).data.every(({ shards }) => shards === 64);
  });
  const page = await world.open("#/doctor");
  const table = page.getByRole("table", { name: "Nodes" });
  await table.waitFor();
  const { data } = await world.evreg.nodes();
  const rows = await table.locator("tbody tr").allInnerTexts();
  expect(rows).toHaveLength(2);
  for (const [index, { host, pid, version }] of data.entries()) {
    for (const text of [`${host} (${pid})`, "serving", "64", version]) expect(rows[index]).toContain(text);
  }
  await other.stop();
  await table.waitFor({ state: "detached" });
});
