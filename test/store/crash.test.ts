import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import { ATTEMPTS } from "../../src/store/libsql/queue/attempts.ts";
import type { Store } from "../../src/store/store.ts";
import { claimRequest } from "../support/claim-request.ts";
import { testOwner } from "./owner.ts";
import { rawSql, startChild } from "./processes.ts";
import { useScratch } from "./scratch.ts";

describe("kill -9 in the middle of writing", () => {
  const scratch = useScratch();
  const open = (): Promise<Store> =>
    openLibsqlStore({ folder: scratch.path, owner: testOwner(), logger: silentLogger });

  it("loses nothing acknowledged, leaves nothing half done, and releases leases", async () => {
    const answered: number[] = [];
    for (let round = 0; round < 3; round += 1) {
      const child = startChild("store-child.ts", ["publish", scratch.path]);
      expect(await child.line()).toBe("open");
      for (let count = 0; count < 150; count += 1) answered.push(Number(await child.line()));
      child.process.kill("SIGKILL");
      await child.ended();
      // The last line may have been cut by the kill.
      answered.push(...child.rest().slice(0, -1).map(Number));
    }

    const store = await open();
    try {
      const stored = new Map<number, string>();
      for (let after = 0; ;) {
        const { events } = await store.events.list({ order: "asc", limit: 500, page: 1, after });
        for (const { rowid, payload } of events) stored.set(rowid, Buffer.from(payload!).toString());
        const last = events.at(-1);
        if (last === undefined) break;
        after = last.rowid;
      }
      expect(new Set(answered).size).toBe(answered.length);
      expect(answered.filter((rowid) => !stored.has(rowid))).toEqual([]);
      for (const payload of stored.values()) expect(JSON.parse(payload)).toHaveProperty("filler");
      expect(await store.queue.list({ status: "delivering", limit: 10 })).toEqual([]);
    } finally {
      await store.close();
    }
    const file = join(scratch.path, "evreg.db");
    expect(rawSql(file, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
    const counts = rawSql(
      file,
      `SELECT (SELECT count(*) FROM event) AS events, (SELECT count(*) FROM delivery) AS deliveries,
        (SELECT count(*) FROM delivery WHERE state = 2) AS delivered,
        (SELECT count(*) FROM ${ATTEMPTS} WHERE outcome = 'delivered') AS successes,
        (SELECT count(*) FROM ${ATTEMPTS} WHERE outcome = 'returned') AS cut_short,
        (SELECT count(*) FROM delivery WHERE attempt > 0 AND state = 0 AND failures > 0) AS counted`,
    )[0] as Record<string, number>;
    expect(counts["deliveries"]).toBe(counts["events"]);
    expect(counts["delivered"]).toBe(counts["successes"]);
    // Each round leased five at a time and finished one of them.
    expect(counts["cut_short"]).toBeGreaterThan(0);
    expect(counts["counted"]).toBe(0);
  });

  it("records interrupted attempts, and makes their deliveries due again", async () => {
    const child = startChild("store-child.ts", ["publish", scratch.path]);
    for (let count = 0; count < 60; count += 1) await child.line();
    child.process.kill("SIGKILL");
    await child.ended();
    const store = await open();
    const request = claimRequest({ nowMs: Date.now() + 60_000, limit: 500, most: 500 });
    const { claims } = await store.queue.claim(request);
    const again = claims.filter(({ attempt }) => attempt > 1);
    expect(again.length).toBeGreaterThan(0);
    for (const { deliveryId, attempt, failures } of again.slice(0, 5)) {
      expect([attempt, failures]).toEqual([2, 0]);
      expect((await store.queue.find(deliveryId))?.attempts).toMatchObject([
        { attempt: 1, outcome: "returned", error_code: "interrupted" },
      ]);
    }
    await store.close();
  });
});
