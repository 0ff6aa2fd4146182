import { join } from "node:path";
import { expect, it } from "vitest";
import { listEvents } from "../../src/store/libsql/events/list.ts";
import { createAction } from "../../src/store/libsql/catalog/actions.ts";
import { createSubscription } from "../../src/store/libsql/catalog/subscriptions.ts";
import { claimDue, recordAndClaim } from "../../src/store/libsql/queue/claim.ts";
import { claimRequest } from "../support/claim-request.ts";
import { openFile } from "./open-file.ts";
import { useScratch } from "./scratch.ts";
import { eventBatch, withBytes } from "./batches.ts";

const scratch = useScratch();
/** Two of them are more than is read in one step, and four as many as in two. */
const BYTES = 2_000_000;

it("a damaged payload is neither shown nor sent, and is noted", () => {
  const connection = openFile(join(scratch.path, "one.db"));
  const claimed = connection.write((work) => {
    createAction(work, { action: "a", application: "x", schemata: {} }, 1);
    const subscription = { application: "x", subscription: "s", action: "a", handler: "h", secret: "s" };
    createSubscription(work, { ...subscription, maxRetries: 1, active: true }, 1);
    const rows = [1, 1, 0, 3, 1, 1, 3, 3];
    recordAndClaim(withBytes(work, Buffer.from("[1][2]")), [eventBatch({ nowMs: 1, rows })]);
    work.run("UPDATE event SET payload = CAST('[3]' AS BLOB) WHERE rowid = 1");
    const { rows: all } = claimDue(work, { ...claimRequest({ nowMs: 9 }), quotas: [] });
    return { places: all.map(({ payload }) => payload), payloads: work.payloads, damaged: work.damaged };
  });
  expect(claimed).toEqual({
    places: [null, 0],
    payloads: [Uint8Array.from(Buffer.from("[2]"))],
    damaged: [1],
  });
  const task = connection.task();
  const { events } = listEvents(task, { order: "asc", limit: 50, page: 1 });
  expect(events.map(({ payload }) => payload)).toEqual([undefined, Uint8Array.from(Buffer.from("[2]"))]);
  expect(task.damaged).toEqual([1]);
  connection.close();
});

it("a page of large payloads is read in parts, each in its place", () => {
  const connection = openFile(join(scratch.path, "one.db"));
  connection.write((sql) => {
    createAction(sql, { action: "a", application: "x", schemata: {} }, 1);
    const bytes = new Uint8Array(5 * BYTES);
    for (let n = 0; n < 5; n += 1) bytes.fill(49 + n, n * BYTES, (n + 1) * BYTES);
    const rows = [0, 1, 2, 3, 4].flatMap((n) => [1, 1, n * BYTES, BYTES]);
    recordAndClaim(withBytes(sql, bytes), [eventBatch({ nowMs: 1, rows })]);
  });
  const { events } = listEvents(connection.task(), { order: "asc", limit: 50, page: 1 });
  const found = events.map(({ rowid, payload }) => {
    const text = Buffer.from(payload!).toString();
    return [rowid, text === String(rowid).repeat(BYTES)];
  });
  expect(found).toEqual([
    [1, true],
    [2, true],
    [3, true],
    [4, true],
    [5, true],
  ]);
  connection.close();
});
