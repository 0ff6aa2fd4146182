import { expect, it } from "vitest";
import type { StoreChange } from "../../src/store/store.ts";
import type { Reply } from "../../src/store/libsql/thread/worker-client.ts";
import { BATCH_ROWS, type PendingWrite, WriteQueue } from "../../src/store/libsql/thread/write-queue.ts";

interface Sent {
  readonly names: readonly unknown[];
  readonly bytes: ArrayBuffer | undefined;
  commit(changes?: readonly StoreChange[]): void;
  fail(error: Error): void;
}

const MiB = 1024 * 1024;

/** A queue whose batches are answered by hand: each write with its call. */
function queueByHand(): { queue: WriteQueue; sent: Sent[]; changes: StoreChange[] } {
  const sent: Sent[] = [];
  const changes: StoreChange[] = [];
  const writer: ConstructorParameters<typeof WriteQueue>[0] = {
    write: ({ groups, bytes }) =>
      new Promise((resolve, reject) => {
        const names = groups.flatMap(({ calls }) =>
          typeof calls === "string" ? (JSON.parse(calls) as unknown[]) : calls,
        );
        const outcomes = groups.map(({ calls }) => ({ answers: calls }));
        const none = { kind: "committed", id: 0, commit: undefined, bytes: undefined } as const;
        const commit: Sent["commit"] = (did = []) => resolve({ ...none, outcomes, changes: did });
        sent.push({ names, bytes, commit, fail: reject });
      }),
  };
  return { queue: new WriteQueue(writer, (change) => void changes.push(change)), sent, changes };
}

function write(name: string, bytes = 0, rows = 1): PendingWrite {
  if (bytes === 0) return { operation: "single", isJoined: false, rows, call: () => name };
  const call: PendingWrite["call"] = (all) => {
    all.add(Buffer.alloc(bytes, name));
    return name;
  };
  return { operation: "joined", isJoined: true, rows, call };
}

const values = (all: readonly Reply[]): unknown[] => all.map(({ value }) => value);
const textOf = (bytes: ArrayBuffer | undefined): string =>
  Buffer.from(bytes ?? new ArrayBuffer(0)).toString();

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

it("sends what one turn brings in one batch, two batches at most, and what comes meanwhile once one is answered", async () => {
  const { queue, sent } = queueByHand();
  const first = [queue.append(write("a")), queue.append(write("b", 1))];
  expect(sent).toHaveLength(0);
  await turn();
  const second = queue.append(write("c"));
  await turn();
  const third = [queue.append(write("d"))];
  await turn();
  third.push(queue.append(write("e")));
  await turn();
  expect(sent.map(({ names }) => names)).toEqual([["a", "b"], ["c"]]);
  sent[0]?.commit();
  expect(values(await Promise.all(first))).toEqual(["a", "b"]);
  expect(sent[2]?.names).toEqual(["d", "e"]);
  sent[2]?.commit();
  sent[1]?.commit();
  expect(values(await Promise.all([second, ...third]))).toEqual(["c", "d", "e"]);
});

it("packs the bytes of a batch into one buffer", async () => {
  const { queue, sent } = queueByHand();
  void queue.append(write("b", 3));
  void queue.append(write("c"));
  void queue.append(write("d", 1));
  await turn();
  expect(textOf(sent[0]?.bytes)).toBe("bbbd");
});

it("cuts what is too much for one transaction, in order, and takes a single write of any size", async () => {
  const { queue, sent } = queueByHand();
  const sizes = [
    ["a", 0, 5 * BATCH_ROWS],
    ["b", 0, BATCH_ROWS - 1],
    ["c", 0, 500],
    ["d", 5 * MiB, 1],
    ["e", 5 * MiB, 1],
    ["f", 1, 1],
  ] as const;
  for (const [name, bytes, rows] of sizes) void queue.append(write(name, bytes, rows));
  for (let index = 0; index < 4; index += 1) {
    await turn();
    sent[index]?.commit();
  }
  await turn();
  expect(sent.map(({ names }) => names)).toEqual([["a"], ["b", "c"], ["d", "e"], ["f"]]);
});

it("fails all of a batch that failed, and no other", async () => {
  const { queue, sent } = queueByHand();
  const first = queue.append(write("a"));
  await turn();
  const second = queue.append(write("b"));
  await turn();
  sent[0]?.fail(new Error("failed"));
  await expect(first).rejects.toThrow("failed");
  sent[1]?.commit();
  expect((await second).value).toBe("b");
});

it("passes on what committed writes did besides", async () => {
  const { queue, sent, changes } = queueByHand();
  void queue.append(write("a"));
  await turn();
  sent[0]?.commit([{ failed: 2 }]);
  await turn();
  expect(changes).toEqual([{ failed: 2 }]);
});

it("refuses more than it can hold instead of growing without end, and takes more once that is answered", async () => {
  const { queue, sent } = queueByHand();
  const held = Array.from({ length: 16 }, () => queue.append(write("b", 16 * MiB)));
  await expect(queue.append(write("c", 1))).rejects.toMatchObject({ code: "unavailable" });
  for (let index = 0; index < held.length; index += 1) {
    await turn();
    sent[index]?.commit();
  }
  await Promise.all(held);
  const after = queue.append(write("d", 1));
  await turn();
  sent.at(-1)?.commit();
  expect((await after).value).toBe("d");
});

it("takes nothing more once it is closed, and waits for what it has", async () => {
  const { queue, sent } = queueByHand();
  const first = queue.append(write("a"));
  await turn();
  const open = [first, queue.append(write("b"))];
  let closed = false;
  const closing = queue.close().then(() => (closed = true));
  await expect(queue.append(write("c"))).rejects.toMatchObject({ code: "unavailable" });
  await turn();
  sent[0]?.commit();
  await turn();
  expect(closed).toBe(false);
  sent[1]?.commit();
  await Promise.all([...open, closing]);
});
