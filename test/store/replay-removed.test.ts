import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import type { ReplaySelection } from "../../src/domain/replay.ts";
import { deleteEvents } from "../../src/store/libsql/events/counts.ts";
import { findReplay, startReplay } from "../../src/store/libsql/history/replays.ts";
import { createAction } from "../../src/store/libsql/catalog/actions.ts";
import { createSubscription, updateSubscription } from "../../src/store/libsql/catalog/subscriptions.ts";
import { advanceReplay, countReplay, planReplay } from "../../src/store/libsql/history/replay-step.ts";
import { recordAndClaim } from "../../src/store/libsql/queue/claim.ts";
import type { WriteConnection } from "../../src/store/libsql/thread/connection.ts";
import { openFile } from "./open-file.ts";
import { useScratch } from "./scratch.ts";
import { eventBatch, withBytes } from "./batches.ts";

const scratch = useScratch();
const EVENTS = 20;
let connection: WriteConnection;

beforeEach(() => {
  connection = openFile(join(scratch.path, "one.db"));
  connection.write((sql) => {
    createAction(sql, { action: "a", application: "x", schemata: {} }, 1);
    const names = { application: "x", handler: "h", maxRetries: 1, action: "a", secret: "s" };
    for (const active of [true, false]) {
      createSubscription(sql, { ...names, subscription: `active ${active}`, active }, 1);
    }
    const rows = Array.from({ length: EVENTS }, () => [1, 1, 0, 1]).flat();
    recordAndClaim(withBytes(sql, new Uint8Array(1)), [eventBatch({ nowMs: 1, rows })]);
    updateSubscription(sql, 2, { active: true }, 1);
    sql.run("UPDATE delivery SET state = 3, due_ms = NULL, finished_ms = 1 WHERE due_ms = ?", 1);
  });
});

afterEach(() => connection.close());

it.each<[ReplaySelection, number]>([
  ["failed", 1],
  ["missed", 2],
  ["all", 1],
])("%s: events removed before their turn are skipped and counted", (selection, subscription) => {
  const plan = planReplay(connection.read, { subscription, selection, fromMs: 0 })!;
  const total = countReplay(connection.read, plan).items[0]!;
  expect(total).toBe(EVENTS);
  const step = { nowMs: 5, maxQueued: 4, maxDue: 4, maxUnfinished: 100, total };
  connection.write((sql) => {
    startReplay(sql, plan, 5);
    expect(advanceReplay(sql, 1, step)).toEqual({ queued: 4, state: "running" });
    // From the passed ones, those right behind them, those in the middle and the last.
    const removed = [1, 5, 6, 12, EVENTS];
    sql.run(
      "DELETE FROM delivery WHERE event_id IN (SELECT value FROM json_each(?))",
      JSON.stringify(removed),
    );
    deleteEvents(sql, removed);
  });
  const next = (): string =>
    connection.write((sql) => {
      sql.run("UPDATE delivery SET state = 2, due_ms = NULL, finished_ms = 6 WHERE due_ms = ?", 5);
      return advanceReplay(sql, 1, step).state;
    });
  while (next() !== "ended");
  expect(findReplay(connection.read, 1)).toMatchObject({ status: "done", total, queued: 16, skipped: 4 });
});
