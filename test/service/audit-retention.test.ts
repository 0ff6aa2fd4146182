import { expect, test } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { Retention } from "../../src/service/retention.ts";
import { openLocalService } from "../support/local-service.ts";

const DAY_MS = 86_400_000;

test("kept changes go once they are too old, and no others", async () => {
  const local = await openLocalService();
  const { evreg, store, clock } = local;
  const create = (action: string) => evreg.actions.create({ action, application: "a", schemata: {} });
  const names = async (): Promise<string[]> => (await evreg.audit.list()).data.map(({ name }) => name);
  await create("old");
  await clock.advance(89 * DAY_MS);
  await create("new");
  const { events, audit } = store;
  const options = { events, audit, clock, logger: silentLogger, retentionMs: undefined };
  const retention = new Retention({ ...options, auditMs: 90 * DAY_MS });
  retention.start();
  await retention.stop();
  expect(await names()).toEqual(["new", "old"]);
  await clock.advance(2 * DAY_MS);
  const later = new Retention({ ...options, auditMs: 90 * DAY_MS });
  later.start();
  await expect.poll(names).toEqual(["new"]);
  await later.stop();
  await local.close();
});
