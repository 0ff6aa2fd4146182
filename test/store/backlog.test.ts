import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { createAction } from "../../src/store/sql/catalog/actions.ts";
import { createSubscription } from "../../src/store/sql/catalog/subscriptions.ts";
import { countBacklog } from "../../src/store/sql/queue/backlog.ts";
import type { WriteConnection } from "../../src/store/libsql/connection.ts";
import { openFile } from "./open-file.ts";
import { useScratch } from "./scratch.ts";

const NOW = 1_000;

describe("a long backlog", () => {
  const scratch = useScratch();
  let connection: WriteConnection;

  beforeEach(async () => {
    connection = await openFile(join(scratch.path, "one.db"));
    await connection.write(async (sql) => {
      await createAction(sql, { action: "a", application: "x", schemata: {} }, 1);
      const subscription = { application: "x", handler: "h", maxRetries: 1, active: true, secret: "s" };
      for (let id = 1; id <= 50; id += 1) {
        const own = { ...subscription, subscription: `s${id}`, action: "a", active: id % 5 > 0 };
        await createSubscription(sql, own, 1);
      }
    });
  });

  /** Deliveries `from` up to `to`, with SQL of `n` for their subscription and the time they are due. */
  async function fill(from: number, to: number, subscription: string, dueMs: string): Promise<void> {
    const series = `WITH RECURSIVE n (n) AS (SELECT ${from} UNION ALL SELECT n + 1 FROM n WHERE n < ${to})`;
    await connection.write((sql) => {
      sql.run(
        `${series} INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
          SELECT n, 1, 1, 1, x'7b7d' FROM n`,
      );
      sql.run(
        `${series} INSERT INTO delivery (rowid, event_id, subscription_id, created_ms, due_ms)
          SELECT n, n, ${subscription}, 1, ${dueMs} FROM n`,
      );
    });
  }

  /** The same with a look at all of them. */
  function countedPlainly(): Record<string, number> {
    const [row] = connection.read.rows<Record<string, number>>(
      `SELECT count(*) FILTER (WHERE s.active AND d.due_ms <= ${NOW}) AS due,
          count(*) FILTER (WHERE s.active AND d.due_ms > ${NOW}) AS waiting,
          count(*) FILTER (WHERE NOT s.active) AS held
        FROM delivery AS d JOIN subscription AS s ON s.rowid = d.subscription_id`,
    );
    return row!;
  }

  const counted = async (max?: number) => {
    const { due, waiting, held, isWhole } = await countBacklog(connection.read, NOW, undefined, max);
    return { due: due.deliveries, waiting: waiting.deliveries, held: held.deliveries, isWhole };
  };

  it("is counted as by a look at each, or up to a limit, and then reported as more", async () => {
    await fill(1, 3_000, "1 + n % 50", "n % 7 * 250");
    await fill(3_001, 6_000, "3", "500 + n % 900");
    await fill(6_001, 6_500, "5", "1");
    await fill(6_501, 20_000, "1 + n % 4", "n");
    const plain = countedPlainly();
    for (const max of [undefined, 30_000]) expect(await counted(max)).toEqual({ ...plain, isWhole: true });
    const { isWhole, ...parts } = await counted(2_000);
    expect(isWhole).toBe(false);
    const sum = parts.due + parts.waiting + parts.held;
    expect(sum).toBeGreaterThanOrEqual(1_500);
    expect(sum).toBeLessThanOrEqual(5_000);
    for (const [part, most] of Object.entries(plain)) {
      expect(parts[part as keyof typeof parts]).toBeLessThanOrEqual(most);
    }
  });
});
