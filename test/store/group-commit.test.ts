import { expect, it } from "vitest";
import { commitBatch } from "../../src/store/libsql/group-commit.ts";
import { answersOf, call, commit, recordCall, finished, joined } from "./batches.ts";
import { openFile } from "./open-file.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const open = () => openFile(`${scratch.path}/evreg.db`);
const createAction = (action: string) => [{ action, application: "x", schemata: {} }, 1];

it("finds each event's own payload among the bytes of its batch, also with no events in a call", () => {
  const connection = open();
  commit(connection, [call("catalog.createAction", ...createAction("a.b"))]);
  const calls = [[1, 1, 2, 3, 1, 1, 5, 4], [], [1, 1, 9, 5]].map((rows) => recordCall({ nowMs: 1, rows }));
  const record = joined("events.record", calls);
  const [outcome] = commit(connection, [record], Buffer.from("--[1][22][333]"));
  expect(answersOf(outcome)).toMatchObject([[{ rowid: 1 }, { rowid: 2 }], [], [{ rowid: 3 }]]);
  expect(connection.read.rows("SELECT CAST(payload AS TEXT) AS payload FROM event")).toEqual([
    { payload: "[1]" },
    { payload: "[22]" },
    { payload: "[333]" },
  ]);
  connection.close();
});

it("does published events and results before a claim that came with them", () => {
  const connection = open();
  const subscription = { application: "x", subscription: "s", action: "a.b", handler: "https://h.example/" };
  const settings = { maxRetries: 0, active: true, secret: "s" };
  commit(connection, [
    call("catalog.createAction", ...createAction("a.b")),
    call("catalog.createSubscription", { ...subscription, ...settings }, 1),
  ]);
  const quota = { leased: 0, capacity: 9, tier: 0 };
  const tiers = [{ maxClaims: 9, isNewestFirst: false }];
  const request = { nowMs: 2, leaseMs: 9, tiers, maxPayloadBytes: 99, defaultQuota: quota };
  const claim = call("queue.claim", { ...request, quotas: "[]" });
  const record = joined("events.record", [recordCall({ nowMs: 1, rows: [1, 1, 0, 2] })]);
  const [claimed] = commit(connection, [claim, record], Buffer.from("{}"));
  expect(claimed).toMatchObject({ answers: [{ rows: expect.stringContaining("a.b") as string }] });
  connection.close();
});

it("does the writes of a kind one by one where they fail together, and answers each by itself", () => {
  const connection = open();
  const [fenced] = finished([{ deliveryId: 9, claimId: 9, ending: "delivered" }], 1);
  const failing = joined("queue.finish", [fenced, null]);
  const groups = [failing, call("catalog.createAction", ...createAction("a.b"))];
  const { outcomes, changes } = commitBatch(connection, { groups, writes: 3 });
  expect(outcomes).toMatchObject([
    { outcomes: [{ ok: { kind: "fenced" } }, { error: {} }] },
    { answers: [{ action: "a.b" }] },
  ]);
  // Not also for the try that failed.
  expect(changes).toEqual([{ serviceEvents: undefined }]);
  connection.close();
});

it("undoes and answers a write that fails by itself, and does the others of its name", () => {
  const connection = open();
  const calls = ["a", "b", "a", "c"].map(createAction);
  const [outcome] = commit(connection, [{ operation: "catalog.createAction", calls }]);
  expect(outcome).toMatchObject({
    outcomes: [
      { ok: { action: "a" } },
      { ok: { action: "b" } },
      { error: { code: "conflict" } },
      { ok: { action: "c" } },
    ],
  });
  expect(connection.read.rows("SELECT action FROM action")).toMatchObject([
    { action: "a" },
    { action: "b" },
    { action: "c" },
  ]);
  connection.close();
});
