import { afterAll, beforeAll, expect, test } from "vitest";
import { openPostgresStore } from "../../src/store/postgres/open.ts";
import { evregContract } from "../contract/evreg.ts";
import { testOwner } from "../store/owner.ts";
import { type LocalService, openLocalService } from "../support/local-service.ts";
import { type Cluster, startCluster } from "../support/postgres.ts";

let cluster: Cluster;

beforeAll(async () => {
  cluster = await startCluster();
});

afterAll(() => cluster.stop());

function openOnPostgres(): Promise<LocalService> {
  return openLocalService({
    open: async (folder) =>
      openPostgresStore({ url: await cluster.emptyStore(), folder, owner: testOwner() }),
  });
}

evregContract("local, on PostgreSQL", openOnPostgres, false);

test("a server whose data are in a database says what makes backups of it", async () => {
  const one = await openOnPostgres();
  const message = expect.stringContaining("make a backup with its tools") as string;
  await expect(one.evreg.backup()).rejects.toMatchObject({ code: "conflict", message });
  await one.close();
});
