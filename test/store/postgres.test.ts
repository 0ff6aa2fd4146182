import { afterAll, beforeAll } from "vitest";
import { openPostgresStore } from "../../src/store/postgres/open.ts";
import { storeContract } from "../contract/store.ts";
import { type Cluster, startCluster } from "../support/postgres.ts";
import { ReusedStore } from "../support/reused-store.ts";
import { testOwner } from "./owner.ts";

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

const remove = (): void => undefined;

async function openOwn() {
  const url = await cluster.emptyStore();
  const reopen = () => openPostgresStore({ url, owner: testOwner() });
  return { store: await reopen(), reopen, remove };
}

storeContract("PostgreSQL", openOwn, async () => ({ store: await reused.open(), remove }));
