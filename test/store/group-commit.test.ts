import { expect, it } from "vitest";
import { packEvents } from "../../src/store/libsql/events/record-wire.ts";
import { commitBatch, type Message, takeBatch } from "../../src/store/libsql/group-commit.ts";
import { call, commit } from "./batches.ts";
import { openFile } from "./open-file.ts";
import { useScratch } from "./scratch.ts";

const scratch = useScratch();
const KiB = 1024;

function message(id: number, rows = 1, bytes?: Uint8Array<ArrayBuffer>): Message {
  const empty = { id, groups: [], writes: 1, rows };
  return bytes === undefined ? empty : { ...empty, bytes: bytes.buffer };
}

function finish(id: number, rows: readonly unknown[]): Message {
  const columns = { nowMs: 1, rows: JSON.stringify(rows) };
  return { ...message(id), groups: [{ name: "finishAttempts", columns, offset: 0 }] };
}

function idsOf(waiting: Message[]): number[] {
  return takeBatch(waiting).messages.map(({ id }) => id);
}

it("takes all that waits into one transaction, and leaves nothing behind", () => {
  const waiting = [message(1), message(2), message(3)];
  expect(idsOf(waiting)).toEqual([1, 2, 3]);
  expect(waiting).toEqual([]);
});

it("puts the bytes one behind the other, and finds each event's own among them", () => {
  const record = (id: number, ...payloads: string[]): Message => {
    const events = payloads.map((text) => ({ actionId: 1, revision: 1, payload: Buffer.from(text) }));
    const columns = packEvents([{ nowMs: id, atomic: false, events }]);
    // Something of another kind comes before its own.
    const bytes = new Uint8Array(Buffer.from(`--${payloads.join("")}`)).buffer;
    return { ...message(id), groups: [{ name: "recordEvents", columns, offset: 2 }], bytes };
  };
  const connection = openFile(`${scratch.path}/evreg.db`);
  commit(connection, [call("createAction", { action: "a.b", application: "x", schemata: {} }, 1, undefined)]);
  const transaction = takeBatch([record(1, "[1]", "[22]"), message(2), record(3), record(4, "[333]")]);
  const { outcomes } = commitBatch(connection, transaction);
  expect(outcomes.map((groups) => groups.length)).toEqual([1, 0, 1, 1]);
  expect(connection.read.rows("SELECT CAST(payload AS TEXT) AS payload FROM event")).toMatchObject([
    { payload: "[1]" },
    { payload: "[22]" },
    { payload: "[333]" },
  ]);
  connection.close();
});

it("never hands the engine an empty BLOB", () => {
  expect(takeBatch([message(1)]).bytes).toHaveLength(1);
  expect(takeBatch([message(1), message(2)]).bytes).toHaveLength(1);
});

it("splits what is too much for one transaction, in order, and takes a single message of any size", () => {
  const large = new Uint8Array(5 * KiB * KiB);
  const waiting = [
    message(1, 9_000),
    message(2, 1_500),
    message(3, 500),
    message(4, 1),
    message(5, 1, large),
    message(6, 1, large),
  ];
  const transactions: number[][] = [];
  while (waiting.length > 0) transactions.push(idsOf(waiting));
  expect(transactions).toEqual([[1], [2, 3], [4, 5], [6]]);
});

it("does the writes of a kind one by one where they fail together, and answers each by itself", () => {
  const connection = openFile(`${scratch.path}/evreg.db`);
  const fenced = [9, 9, 1, 1, null, 200, null, null, { kind: "delivered" }];
  const broken = [9, 9, 1, 1, null, 200, null, null];
  const { outcomes } = commitBatch(connection, takeBatch([finish(1, [fenced, broken]), finish(2, [fenced])]));
  expect(outcomes[0]).toMatchObject([{ outcomes: [{ ok: { answer: { state: -1 } } }, { error: {} }] }]);
  expect(outcomes[1]).toEqual([{ packed: [-1] }]);
  connection.close();
});

it("undoes and answers a write that fails by itself, and does the others of its name", () => {
  const connection = openFile(`${scratch.path}/evreg.db`);
  const columns = ["a", "b", "a", "c"].map((action) => [
    { action, application: "x", schemata: {} },
    1,
    undefined,
  ]);
  const [outcome] = commit(connection, [{ name: "createAction", columns, offset: 0 }]);
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
