import { join } from "node:path";
import { expect, it } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import { ATTEMPTS } from "../../src/store/libsql/queue/attempts.ts";
import { testOwner } from "./owner.ts";
import { rawSql, startChild } from "./processes.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const EVENTS = 2_000;

it("a replay that is killed again and again makes each delivery due once", async () => {
  const store = await openLibsqlStore({ folder: scratch.path, owner: testOwner(), logger: silentLogger });
  const { rowid: actionId } = await store.catalog.createAction(
    { action: "a.b", application: "x", schemata: {} },
    1,
  );
  const payload = Buffer.from("{}");
  for (let done = 0; done < EVENTS; done += 1_000) {
    const batch = Array.from({ length: 1_000 }, () => ({ actionId, revision: 1, payload }));
    await store.events.record(batch, Date.now());
  }
  const handler = "https://h.example/";
  const names = { application: "x", subscription: "s", action: "a.b", handler };
  await store.catalog.createSubscription({ ...names, maxRetries: 5, active: true, secret: "s" }, 1);
  const plan = await store.replays.plan({ subscription: 1, selection: "all", fromMs: 0 });
  await store.replays.start(plan!, Date.now());
  await store.close();

  let told = 0;
  for (let kills = 0; ; kills += 1) {
    const child = startChild("store-child.ts", ["replay", scratch.path]);
    expect(await child.line()).toBe("open");
    const lines: string[] = [];
    // Some tens of steps of seven in each round, and all that is left in the last one.
    const most = kills < 3 ? 60 : Infinity;
    while (lines.length < most) {
      const line = await child.line();
      lines.push(line);
      if (line === "ended") break;
    }
    child.process.kill("SIGKILL");
    await child.ended();
    lines.push(...child.rest());
    told += lines.reduce((sum, line) => sum + (Number(line) || 0), 0);
    if (lines.includes("ended")) break;
  }

  const file = join(scratch.path, "evreg.db");
  const [row] = rawSql(
    file,
    `SELECT (SELECT status FROM replay) AS status, (SELECT queued FROM replay) AS queued,
      (SELECT count(*) FROM delivery) AS deliveries, (SELECT count(*) FROM ${ATTEMPTS} WHERE outcome = 'delivered') AS sent,
      (SELECT count(DISTINCT delivery_id) FROM ${ATTEMPTS} WHERE outcome = 'delivered') AS arrived`,
  );
  expect(row).toMatchObject({ status: "done", queued: EVENTS, deliveries: EVENTS });
  // One that was leased when the kill came is handed back, and that is no delivery.
  expect(row).toMatchObject({ sent: EVENTS, arrived: EVENTS });
  // A kill may come between a commit and its answer, never the other way round.
  expect(told).toBeLessThanOrEqual(EVENTS);
  expect(rawSql(file, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
});
