import { existsSync, rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { silentLogger } from "../../src/runtime/logger.ts";
import { checkFile, moveNumbers } from "../../src/store/libsql/files/file-tasks.ts";
import { LATEST_VERSION } from "../../src/store/libsql/files/migrations.ts";
import { inspectMigrations } from "../../src/store/libsql/migration-status.ts";
import { openLibsqlStore } from "../../src/store/libsql/open.ts";
import type { Claim } from "../../src/store/queue.ts";
import type { Store } from "../../src/store/store.ts";
import { lengthOf, someOf } from "../faults/length.ts";
import { claimRequest } from "../support/claim-request.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { writeOlderFile } from "../support/older-file.ts";
import { testOwner } from "./owner.ts";
import { rawSql, startChild } from "./processes.ts";
import { useScratch } from "./scratch.ts";

// Version 12 of the schema gives each meaning that `due_ms`, `slowed_until_ms` and `probe.tried` had a column of its own.

const scratch = useScratch();
const NOW = Date.parse("2026-03-01T12:00:00.000Z");
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** How a requested delivery was stored before. */
const requestedAt = (ms: number): number => ms - 2 ** 50;
const iso = (ms: number): string => new Date(ms).toISOString();

const open = (): Promise<Store> =>
  openLibsqlStore({
    folder: scratch.path,
    owner: testOwner(),
    logger: silentLogger,
    clock: new ManualClock(NOW),
  });

interface OldDelivery {
  readonly event: number;
  readonly subscription: number;
  readonly createdMs?: number;
  readonly dueMs?: number;
  readonly failures?: number;
  readonly state?: number;
}

const PLAIN = 1;
const BLOCKED = 2;
const FORMER = 3;
const SET_BACK = 4;
/** What each of them is before, and its delivery's priority, due time and sequence after. */
const UNORDERED: readonly (readonly [OldDelivery, unknown[]])[] = [
  [{ event: 1, subscription: PLAIN, dueMs: NOW + HOUR_MS, failures: 1 }, [1, NOW + HOUR_MS, null]],
  [{ event: 2, subscription: PLAIN, dueMs: requestedAt(NOW - 5) }, [0, NOW - 5, 2]],
  [{ event: 3, subscription: PLAIN, dueMs: NOW }, [1, NOW, null]],
  [{ event: 4, subscription: PLAIN, state: 2 }, [1, null, null]],
  [{ event: 5, subscription: PLAIN, state: 3, failures: 6 }, [1, null, null]],
];
const ORDERED: typeof UNORDERED = [
  [{ event: 1, subscription: BLOCKED, dueMs: requestedAt(NOW - 3) }, [0, NOW - 3, 1]],
  [{ event: 2, subscription: BLOCKED, dueMs: 2, failures: 1 }, [1, NOW - 10, 2]],
  [{ event: 3, subscription: BLOCKED, dueMs: 3 }, [1, NOW - 10, 3]],
  [{ event: 1, subscription: FORMER, dueMs: 1 }, [1, NOW - 10, 1]],
  [{ event: 2, subscription: FORMER, dueMs: 2 }, [1, NOW - 10, 2]],
  [{ event: 4, subscription: SET_BACK, dueMs: 4, createdMs: NOW + DAY_MS }, [1, NOW + DAY_MS, 4]],
  [{ event: 5, subscription: SET_BACK, dueMs: 5, createdMs: NOW - HOUR_MS }, [1, NOW - HOUR_MS, 5]],
];

/** The statements that fill a file of that version; ordered subscriptions came with version 6. */
function rowsOf(version: number): readonly string[] {
  const isOrdered = version >= 6;
  const ids = isOrdered ? [PLAIN, BLOCKED, FORMER, SET_BACK] : [PLAIN];
  const subscription = (id: number): string[] => {
    const columns: Record<string, string | number> = {
      rowid: id,
      application: "'x'",
      subscription: `'s${id}'`,
    };
    Object.assign(columns, { action_id: 1, handler: "'https://h.example/'", active: 1, created_ms: 1 });
    columns["max_retries"] = id === BLOCKED ? 0 : 5;
    if (version < 3) columns["secret"] = "'s'";
    if (version >= 5) {
      Object.assign(columns, { failing_since_ms: NOW - 9, failed_ms: NOW - 8, failing_ms: 7 });
      if (id === BLOCKED) columns["slowed_until_ms"] = NOW + HOUR_MS;
      if (id === FORMER) columns["slowed_until_ms"] = NOW + 2 * HOUR_MS;
    }
    if (id === BLOCKED || id === SET_BACK) {
      Object.assign(columns, { ordered: 1, settings: `'{"ordered":true,"on_exhausted":"block"}'` });
    }
    const secret = `INSERT INTO subscription_secret (subscription_id, secret, bearer) VALUES (${id}, 's', 'secret')`;
    const insert = `INSERT INTO subscription (${Object.keys(columns).join()}) VALUES (${Object.values(columns).join()})`;
    return version < 3 ? [insert] : [insert, secret];
  };
  const deliveries = (isOrdered ? [...UNORDERED, ...ORDERED] : UNORDERED).map(([old]) => {
    const { event, subscription: of, createdMs = NOW - 10, dueMs = null, failures = 0, state = 0 } = old;
    const ended = state === 0 ? "NULL, NULL" : `${NOW}, ${state === 3 ? "'HTTP 500'" : "NULL"}`;
    return `(${event}, ${of}, ${state}, ${failures}, ${failures}, ${createdMs}, ${dueMs}, ${ended})`;
  });
  return [
    "INSERT INTO action (action, application, revision, created_ms) VALUES ('a', 'x', 1, 1)",
    "INSERT INTO action_revision (action_id, revision, schemata, created_ms) VALUES (1, 1, '{}', 1)",
    ...ids.flatMap(subscription),
    `INSERT INTO event (action_id, revision, timestamped_ms, payload) VALUES
      ${[1, 2, 3].map(() => `(1, 1, ${NOW - 10}, x'7b7d')`).join()},
      (1, 1, ${NOW + DAY_MS}, x'7b7d'), (1, 1, ${NOW - HOUR_MS}, x'7b7d')`,
    `INSERT INTO clock_step VALUES (5, ${deliveries.length}, ${NOW - HOUR_MS})`,
    `INSERT INTO delivery (event_id, subscription_id, state, attempt, failures, created_ms, due_ms, finished_ms, last_error)
      VALUES ${deliveries.join()}`,
    // What was under way is due again at its place.
    ...(isOrdered ? [`INSERT INTO lease VALUES (${deliveries.length}, 7, ${NOW - 2}, ${NOW + 9})`] : []),
    `INSERT INTO probe VALUES (1, ${NOW - DAY_MS}, x'00')`,
  ];
}

/** Claims and delivers all that is sent at that time: the events of each subscription, in their order. */
async function drain(store: Store, nowMs: number): Promise<Record<number, number[]>> {
  const sent: Record<number, number[]> = {};
  for (;;) {
    const claimed: readonly Claim[] = (await store.queue.claim(claimRequest({ nowMs, limit: 1 }))).claims;
    const [claim] = claimed;
    if (claim === undefined) return sent;
    (sent[claim.subscription.subscriptionId] ??= []).push(claim.event.eventId);
    const result = {
      deliveryId: claim.deliveryId,
      claimId: claim.claimId,
      startedAtMs: nowMs,
      durationMs: 1,
    };
    await store.queue.finish([{ ...result, statusCode: 200, next: { kind: "delivered" } }], nowMs);
  }
}

describe.each(Array.from({ length: 11 }, (_, index) => index + 1))("a file of version %i", (version) => {
  it("keeps what was requested, ordered, blocked, formerly ordered and published before the clock was set back", async () => {
    const file = join(scratch.path, "evreg.db");
    writeOlderFile(file, version, ...rowsOf(version));
    const store = await open();
    const isOrdered = version >= 6;
    const planned = async (id: number) =>
      (await store.queue.list({ subscription: id, limit: 9 })).map((one) => [
        one.event_id,
        one.status,
        one.next_attempt_at,
      ]);
    expect(await planned(PLAIN)).toEqual([
      [5, "failed", null],
      [4, "delivered", null],
      [3, "pending", iso(NOW)],
      [2, "pending", iso(NOW - 5)],
      [1, "waiting", iso(NOW + HOUR_MS)],
    ]);
    if (isOrdered) {
      expect(await planned(BLOCKED)).toEqual([
        [3, "pending", iso(NOW + HOUR_MS)],
        [2, "waiting", iso(NOW + HOUR_MS)],
        [1, "pending", iso(NOW - 3)],
      ]);
      const [blocked, former, setBack] = await Promise.all(
        [BLOCKED, FORMER, SET_BACK].map((id) => store.catalog.findSubscription(id)),
      );
      expect(blocked).toMatchObject({ blocked_by: 7, slowed_until: iso(NOW + HOUR_MS) });
      expect(former).toMatchObject({
        blocked_by: null,
        slowed_until: iso(NOW + 2 * HOUR_MS),
        ordered: false,
      });
      expect(setBack).toMatchObject({ blocked_by: null, slowed_until: null, ordered: true });
      // The success of what was requested ends the wait for the retry.
      expect(await drain(store, NOW)).toEqual({ [PLAIN]: [2, 3], [BLOCKED]: [1, 2, 3], [SET_BACK]: [4, 5] });
      expect(await drain(store, NOW + HOUR_MS)).toEqual({ [PLAIN]: [1] });
      expect(await drain(store, NOW + 2 * HOUR_MS)).toEqual({ [FORMER]: [1, 2] });
    } else {
      expect(await drain(store, NOW)).toEqual({ [PLAIN]: [2, 3] });
    }
    await store.close();
    expect(inspectMigrations(scratch.path)).toMatchObject({ current: LATEST_VERSION, pending: [] });
    expect(await checkFile(file)).toMatchObject({ impossible: [] });
    const copy = `${file}.before-v${version + 1}`;
    expect(rawSql(copy, "SELECT max(tried) AS tried FROM probe")).toEqual([{ tried: NOW - DAY_MS }]);
  });
});

it("each delivery of version 11 has its priority, its time and its place afterwards", async () => {
  const file = join(scratch.path, "evreg.db");
  writeOlderFile(file, 11, ...rowsOf(11).filter((statement) => !statement.includes("INTO lease")));
  await (await open()).close();
  const rows = rawSql(file, "SELECT priority, due_ms, sequence FROM delivery ORDER BY rowid");
  expect(rows.map(({ priority, due_ms, sequence }) => [priority, due_ms, sequence])).toEqual(
    [...UNORDERED, ...ORDERED].map(([, after]) => after),
  );
  const subscriptions = `SELECT slowed_until_ms AS slowed, retry_wait_until_ms AS wait, last_failure_ms AS last,
    failing_total_ms AS total FROM subscription ORDER BY rowid`;
  const failing = { last: NOW - 8, total: 7 };
  expect(rawSql(file, subscriptions)).toEqual([
    { slowed: null, wait: null, ...failing },
    { slowed: null, wait: NOW + HOUR_MS, ...failing },
    { slowed: NOW + 2 * HOUR_MS, wait: null, ...failing },
    { slowed: null, wait: null, ...failing },
  ]);
  expect(rawSql(file, "SELECT one, started_ms FROM last_backup")).toEqual([
    { one: 1, started_ms: NOW - DAY_MS },
  ]);
});

it("a count of trial writes does not become the time of a backup", async () => {
  const file = join(scratch.path, "evreg.db");
  writeOlderFile(file, 11, "INSERT INTO probe VALUES (1, 12, x'00')");
  await (await open()).close();
  expect(rawSql(file, "SELECT one FROM last_backup")).toEqual([]);
});

it("a backup of version 11 still says when it was begun, for the numbers that are passed over", async () => {
  const file = join(scratch.path, "copy.db");
  writeOlderFile(file, 11, ...rowsOf(11), `UPDATE probe SET tried = ${NOW + DAY_MS + HOUR_MS}`);
  const { event } = await moveNumbers(file, NOW + DAY_MS + 2 * HOUR_MS);
  expect(event! - 5).toBe((3_600 + 600) * 1_000_000);
});

it("turning the order off changes no delivery, and turning it on again finds the order as it was", async () => {
  const file = join(scratch.path, "evreg.db");
  writeOlderFile(file, 11, ...rowsOf(11));
  const all = "SELECT rowid, priority, due_ms, sequence, failures FROM delivery ORDER BY rowid";
  await (await open()).close();
  const before = rawSql(file, all);
  const first = await open();
  for (const id of [BLOCKED, SET_BACK]) {
    await first.catalog.updateSubscription(id, { settings: { ordered: false } }, NOW);
  }
  await first.close();
  expect(rawSql(file, all)).toEqual(before);
  const store = await open();
  for (const id of [BLOCKED, SET_BACK, FORMER]) {
    await store.catalog.updateSubscription(id, { settings: { ordered: true }, active: true }, NOW);
  }
  expect(await drain(store, NOW)).toMatchObject({
    [BLOCKED]: [1, 2, 3],
    [SET_BACK]: [4, 5],
    [FORMER]: [1, 2],
  });
  await store.close();
});

it("a migration that is killed leaves the file as it was or as it is to be", async () => {
  const file = join(scratch.path, "evreg.db");
  const { kills, deliveries: more } = lengthOf("store/explicit-columns");
  const series = `WITH RECURSIVE n (n) AS (SELECT 100 UNION ALL SELECT n + 1 FROM n WHERE n < ${99 + more})`;
  writeOlderFile(
    file,
    11,
    ...rowsOf(11),
    `${series} INSERT INTO event (rowid, action_id, revision, timestamped_ms, payload) SELECT n, 1, 1, ${NOW}, x'7b7d' FROM n`,
    `${series} INSERT INTO delivery (event_id, subscription_id, created_ms, due_ms) SELECT n, ${BLOCKED}, ${NOW}, n FROM n`,
  );
  for (const delayMs of someOf([0, 50, 120, 250, 500], kills)) {
    rmSync(`${file}.before-v12`, { force: true });
    const child = startChild("store-child.ts", ["hold", scratch.path]);
    while (!existsSync(`${file}.before-v12`) && child.process.exitCode === null) await sleep(1);
    await sleep(delayMs);
    child.process.kill("SIGKILL");
    await child.ended();
    const version = rawSql(file, "PRAGMA user_version")[0]?.["user_version"];
    const places =
      version === 11 ? "due_ms = event_id" : "sequence = event_id AND priority = 1 AND due_ms > 1000000";
    const counted = rawSql(file, `SELECT count(*) AS n FROM delivery WHERE ${places}`);
    expect(counted[0]?.["n"], `after ${delayMs} ms, version ${String(version)}`).toBe(more + 6);
    expect(rawSql(file, "PRAGMA integrity_check")).toEqual([{ integrity_check: "ok" }]);
  }
  const store = await open();
  await store.catalog.updateSubscription(BLOCKED, { active: true }, NOW);
  const { claims } = await store.queue.claim(claimRequest({ nowMs: NOW, limit: 3 }));
  expect(claims.length).toBeGreaterThan(0);
  await store.close();
  expect(await checkFile(file)).toMatchObject({ impossible: [] });
}, 60_000);
