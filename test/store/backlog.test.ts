import { join } from "node:path";
import { expect, it } from "vitest";
import { createAction } from "../../src/store/sql/catalog/actions.ts";
import { createSubscription } from "../../src/store/sql/catalog/subscriptions.ts";
import { countBacklog } from "../../src/store/sql/queue/backlog.ts";
import { openFile } from "./open-file.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const NOW = 1_000;
const SUBSCRIPTIONS = 50;
const DELIVERIES = 10_000;

it("a long backlog is counted up to a limit, a part of each subscription's, and then reported as more", async () => {
  const connection = await openFile(join(scratch.path, "one.db"));
  await connection.write(async (sql) => {
    await createAction(sql, { action: "a", application: "x", schemata: {} }, 1);
    const given = { application: "x", action: "a", handler: "h", maxRetries: 1, secret: "s" };
    for (let id = 1; id <= SUBSCRIPTIONS; id += 1) {
      await createSubscription(sql, { ...given, subscription: `s${id}`, active: id % 5 > 0 }, 1);
    }
    const series = `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ${DELIVERIES})`;
    sql.run(
      `${series} INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload) SELECT n, 1, 1, 1, x'7b7d' FROM n`,
    );
    // A half of the active ones' is due, and the first has most.
    sql.run(
      `${series} INSERT INTO delivery (rowid, event_id, subscription_id, created_ms, due_ms)
        SELECT n, n, iif(n <= 5000, 1 + n % ${SUBSCRIPTIONS}, 1), 1, ${NOW} + n % 2 FROM n`,
    );
  });
  const counted = async (max?: number) => {
    const { due, waiting, held, isWhole } = await countBacklog(connection.read, NOW, undefined, max);
    return { due: due.deliveries, waiting: waiting.deliveries, held: held.deliveries, isWhole };
  };
  expect(await counted()).toEqual({ due: 4_500, waiting: 4_500, held: 1_000, isWhole: true });
  const { isWhole, ...parts } = await counted(2_000);
  expect(isWhole).toBe(false);
  // The first takes all of it, and fifty of each are counted all the same.
  expect(parts.due + parts.waiting).toBe(2_000 + 39 * 50);
  expect(parts.held).toBe(10 * 50);
});
