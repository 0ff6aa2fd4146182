import { afterAll, beforeAll, expect, test } from "vitest";
import { evregContract } from "../contract/evreg.ts";
import { type LocalService, openLocalService } from "../support/local-service.ts";
import { type Cluster, startCluster } from "../support/postgres.ts";
import { ReusedStore } from "../support/reused-store.ts";

let cluster: Cluster;
let reused: ReusedStore;

beforeAll(async () => {
  cluster = await startCluster();
  reused = new ReusedStore(cluster);
});

afterAll(async () => {
  await reused.end();
  await cluster.stop();
});

function openOnPostgres(): Promise<LocalService> {
  return openLocalService({ open: () => reused.open() });
}

evregContract("local, on PostgreSQL", openOnPostgres, false);

test("a server whose data are in a database says what makes backups of it", async () => {
  const one = await openOnPostgres();
  const message = expect.stringContaining("make a backup with its tools") as string;
  await expect(one.evreg.backup()).rejects.toMatchObject({ code: "conflict", message });
  await one.close();
});
