import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { openPostgresStore } from "../../src/store/postgres/open.ts";
import type { Store } from "../../src/store/store.ts";
import { storeContract } from "../contract/store.ts";
import { type Cluster, startCluster } from "../support/postgres.ts";
import { testOwner } from "./owner.ts";

let cluster: Cluster;
let folder: string;
let made = 0;

beforeAll(async () => {
  cluster = await startCluster();
  await cluster.run("CREATE DATABASE empty_store");
  folder = mkdtempSync(join(tmpdir(), "evreg-store-"));
  await (await open("empty_store")).close();
});

afterAll(async () => {
  await cluster.stop();
  rmSync(folder, { recursive: true });
});

function open(database: string): Promise<Store> {
  return openPostgresStore({ url: cluster.url(database), folder, owner: testOwner() });
}

storeContract("PostgreSQL", async () => {
  const name = `store_${(made += 1)}`;
  await cluster.run(`CREATE DATABASE ${name} TEMPLATE empty_store`);
  await cluster.run("UPDATE evreg.data_identity SET id = replace(gen_random_uuid()::text, '-', '')", name);
  const reopen = () => open(name);
  return { store: await reopen(), reopen, remove: () => undefined };
});
