import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { APPLICATION_ID, MIGRATIONS } from "../../src/store/libsql/migrations.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import { testOwner } from "./owner.ts";
import { rawSql } from "./processes.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();

describe("a file from before there were counts", () => {
  it("has them once it is open, and the same events", async () => {
    const file = join(scratch.path, "evreg.db");
    rawSql(
      file,
      ...(MIGRATIONS[0]?.statements ?? []),
      `PRAGMA application_id = ${APPLICATION_ID}`,
      "PRAGMA user_version = 1",
      "INSERT INTO action (action, application, revision, created_ms) VALUES ('a', 'x', 1, 1), ('b', 'x', 1, 1)",
      `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10000)
        INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload)
        SELECT n, 1 + (n % 10 = 0), 1, n, x'7b7d' FROM n`,
    );
    const store = await openLibsqlStore({
      folder: scratch.path,
      owner: testOwner(),
      logger: silentLogger,
    });
    const page = { order: "asc" as const, limit: 2, page: 451 };
    const { events, total } = await store.listEvents({ ...page, action: "b" });
    expect([events.map(({ rowid }) => rowid), total]).toEqual([[9_010, 9_020], 1_000]);
    expect((await store.listEvents({ ...page, fromMs: 4_001 })).total).toBe(6_000);
    await store.close();
    const counted = "SELECT sum(events) AS n FROM event_count WHERE action_id = 0";
    expect(rawSql(file, counted)).toEqual([{ n: 8_191 }]);
  });
});
