import { expect, test } from "vitest";
import { openLocal } from "../../src/app/server.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { until } from "../support/until.ts";
import { configFor } from "../support/server.ts";
import { dataFolder, ORDER_PLACED, start } from "./setup.ts";

const HOUR_MS = 3_600_000;

test("a server removes events older than retention.events, and without it removes none", async () => {
  const data = dataFolder();
  const clock = new ManualClock(Date.now() - 2 * HOUR_MS);
  const config = configFor(data);
  const past = await openLocal({ config, version: "1", logger: silentLogger, command: "publish", clock });
  await past.actions.create(ORDER_PLACED);
  const old = { action: "order.placed", payload: RawJson.fromText('{"id":"old"}'), idempotency_key: "once" };
  await past.events.publish(old);
  await past.close();

  const keeping = await start(data);
  await keeping.evreg.events.publish({ action: "order.placed", payload: RawJson.fromText('{"id":"young"}') });
  expect((await keeping.evreg.events.list()).meta.total).toBe(2);
  await keeping.stop();

  const lines: object[] = [];
  const info = (fields: object, message: string): void => void lines.push({ ...fields, message });
  const logger = { ...silentLogger, info };
  const server = await start(data, { retention: { events: HOUR_MS } }, { logger });
  await until("the old one to be gone", async () => (await server.evreg.events.list()).meta.total === 1);
  expect((await server.evreg.events.list()).data).toMatchObject([{ rowid: 2 }]);
  await expect(server.evreg.events.get(1)).rejects.toMatchObject({ code: "not_found" });
  const again = await server.evreg.events.publish(old);
  expect(again).toMatchObject({ data: { rowid: 3 } });
  await until("the line", () => lines.length > 0);
  expect(lines).toEqual([
    { events: 1, deliveries: 0, message: "Events older than retention.events were removed." },
  ]);
  await server.stop();
});
