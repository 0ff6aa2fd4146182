import { afterAll, beforeAll, expect, test } from "vitest";
import { evregEngineContract } from "../contract/evreg.ts";
import { type LocalService, openLocalService } from "../support/local-service.ts";
import { sharedCluster } from "../support/postgres.ts";
import { ReusedStore } from "../support/reused-store.ts";

let reused: ReusedStore;

beforeAll(async () => {
  reused = new ReusedStore(await sharedCluster());
});

afterAll(() => reused.end());

function openOnPostgres(): Promise<LocalService> {
  return openLocalService({ open: () => reused.open() });
}

evregEngineContract(openOnPostgres);

test("a server whose data are in a database says what makes backups of it", async () => {
  const one = await openOnPostgres();
  const message = expect.stringContaining("make a backup with its tools") as string;
  await expect(one.evreg.backup()).rejects.toMatchObject({ code: "conflict", message });
  await one.close();
});
