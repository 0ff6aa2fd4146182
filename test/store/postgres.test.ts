import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { openPostgresStore } from "../../src/store/postgres/open.ts";
import { storeContract } from "../contract/store.ts";
import { type Cluster, startCluster } from "../support/postgres.ts";
import { testOwner } from "./owner.ts";

let cluster: Cluster;
let folder: string;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "evreg-store-"));
  cluster = await startCluster();
});

afterAll(async () => {
  await cluster.stop();
  rmSync(folder, { recursive: true });
});

storeContract("PostgreSQL", async () => {
  const url = await cluster.emptyStore();
  const reopen = () => openPostgresStore({ url, owner: testOwner() });
  return { store: await reopen(), reopen, remove: () => undefined };
});
