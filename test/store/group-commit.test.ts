import { expect, it } from "vitest";
import { call, commit, eventBatch, finished } from "./batches.ts";
import { openFile } from "./open-file.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const open = () => openFile(`${scratch.path}/evreg.db`);
const createAction = (action: string) =>
  call("catalog.createAction", { action, application: "x", schemata: {} }, 1);

it("finds each event's own payload among the bytes of its batch, also with no events in a call", () => {
  const connection = open();
  commit(connection, [createAction("a.b")]);
  const calls = [[1, 1, 2, 3, 1, 1, 5, 4], [], [1, 1, 9, 5]].map((rows) => eventBatch({ nowMs: 1, rows }));
  const { outcomes } = commit(
    connection,
    calls.map((one) => ["events.record", one] as const),
    Buffer.from("--[1][22][333]"),
  );
  expect(outcomes).toMatchObject([{ ok: [{ rowid: 1 }, { rowid: 2 }] }, { ok: [] }, { ok: [{ rowid: 3 }] }]);
  expect(connection.read.rows("SELECT CAST(payload AS TEXT) AS payload FROM event")).toEqual([
    { payload: "[1]" },
    { payload: "[22]" },
    { payload: "[333]" },
  ]);
  connection.close();
});

it("undoes and answers a write that fails by itself, and does the others", () => {
  const connection = open();
  const [result] = finished([{ deliveryId: 9, claimId: 9, ending: "delivered" }], 1);
  const creations = ["a", "b", "a", "c"].map(createAction);
  const { outcomes, work } = commit(connection, [
    ["queue.finish", result],
    ["queue.finish", null],
    ...creations,
  ]);
  expect(outcomes).toMatchObject([
    { ok: { kind: "fenced" } },
    { error: { code: "internal" } },
    { ok: { action: "a" } },
    { ok: { action: "b" } },
    { error: { code: "conflict" } },
    { ok: { action: "c" } },
  ]);
  expect(work.changes).toEqual([]);
  expect(connection.read.rows("SELECT action FROM action")).toMatchObject([
    { action: "a" },
    { action: "b" },
    { action: "c" },
  ]);
  connection.close();
});
