import { expect, it } from "vitest";
import { board, type Message } from "../../src/store/libsql/group-commit.ts";

const KiB = 1024;

function message(id: number, rows = 1, bytes?: Uint8Array<ArrayBuffer>): Message {
  const ops = [{ name: "recordEvents" as const, call: { nowMs: id, atomic: false, rows: [] } }];
  return { id, ops, rows, ...(bytes === undefined ? {} : { bytes: bytes.buffer }) };
}

function idsOf(waiting: Message[]): number[] {
  return board(waiting).parties.map(({ id }) => id);
}

it("takes all that waits into one flight, and leaves nothing behind", () => {
  const waiting = [message(1), message(2), message(3)];
  expect(idsOf(waiting)).toEqual([1, 2, 3]);
  expect(waiting).toEqual([]);
});

it("puts the bytes one behind the other and tells each call where its own begin", () => {
  const { ops, bytes } = board([
    message(1, 1, new Uint8Array([1, 2, 3])),
    message(2),
    message(3, 1, new Uint8Array([4])),
  ]);
  expect([...bytes]).toEqual([1, 2, 3, 4]);
  expect(ops).toMatchObject([{ call: { base: 0 } }, { call: { base: 3 } }, { call: { base: 3 } }]);
});

it("never hands the engine an empty BLOB", () => {
  expect(board([message(1)]).bytes).toHaveLength(1);
  expect(board([message(1), message(2)]).bytes).toHaveLength(1);
});

it("splits what is too much for one flight, in order, and takes a single message of any size", () => {
  const large = new Uint8Array(5 * KiB * KiB);
  const waiting = [
    message(1, 9_000),
    message(2, 1_500),
    message(3, 500),
    message(4, 1),
    message(5, 1, large),
    message(6, 1, large),
  ];
  const flights: number[][] = [];
  while (waiting.length > 0) flights.push(idsOf(waiting));
  expect(flights).toEqual([[1], [2, 3], [4, 5], [6]]);
});
