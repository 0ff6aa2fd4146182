import { expect, it } from "vitest";
import type { StoreChange } from "../../src/store/store.ts";
import type { WriteCall } from "../../src/store/thread/protocol.ts";
import { BATCH_ROWS, type PendingWrite, WriteQueue } from "../../src/store/thread/write-queue.ts";

interface Sent {
  readonly names: readonly unknown[];
  readonly bytes: Uint8Array;
  commit(): void;
  fail(error: Error): void;
}

const MiB = 1024 * 1024;

/** A queue whose batches are answered by hand: each write with its call. */
function queueByHand(changes: readonly StoreChange[] = [], seenByAll?: () => Promise<void>) {
  const sent: Sent[] = [];
  const writer: ConstructorParameters<typeof WriteQueue>[0] = {
    write: ({ calls, bytes }) =>
      new Promise((resolve, reject) => {
        const names = (JSON.parse(calls) as WriteCall[]).map(([, [name]]) => name);
        const outcomes = names.map((ok) => ({ ok }));
        sent.push({
          names,
          bytes: new Uint8Array(bytes ?? new ArrayBuffer(0)),
          commit: () => resolve({ outcomes, commitMs: 0, changes }),
          fail: reject,
        });
      }),
  };
  return { queue: new WriteQueue(writer, () => undefined, seenByAll), sent };
}

const write = (name: string, bytes = 0, rows = 1): PendingWrite => ({
  operation: "any",
  rows,
  pieces: bytes > 0 ? [Buffer.alloc(bytes, name)] : [],
  call: () => [name],
});

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

it("sends what one turn brings in one batch, two batches at most, and what comes meanwhile once one is answered", async () => {
  const { queue, sent } = queueByHand();
  const first = [queue.append(write("a", 3)), queue.append(write("b")), queue.append(write("c", 1))];
  expect(sent).toHaveLength(0);
  await turn();
  const second = queue.append(write("d"));
  await turn();
  const third = [queue.append(write("e"))];
  await turn();
  third.push(queue.append(write("f")));
  await turn();
  expect(sent.map(({ names }) => names)).toEqual([["a", "b", "c"], ["d"]]);
  expect(Buffer.from(sent[0]!.bytes).toString()).toBe("aaac");
  sent[0]?.commit();
  expect(await Promise.all(first)).toEqual(["a", "b", "c"]);
  expect(sent[2]?.names).toEqual(["e", "f"]);
  sent[1]?.fail(new Error("failed"));
  await expect(second).rejects.toThrow("failed");
  sent[2]?.commit();
  expect(await Promise.all(third)).toEqual(["e", "f"]);
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

it("refuses more than it can hold instead of growing without end, and takes more once that is answered", async () => {
  const { queue, sent } = queueByHand();
  const held = Array.from({ length: 16 }, () => queue.append(write("b", 16 * MiB)));
  const refusal = { code: "unavailable", details: { stored: false } };
  await expect(queue.append(write("c", 1))).rejects.toMatchObject(refusal);
  for (let index = 0; index < held.length; index += 1) {
    await turn();
    sent[index]?.commit();
  }
  await Promise.all(held);
  const after = queue.append(write("d", 1));
  await turn();
  sent.at(-1)?.commit();
  expect(await after).toBe("d");
});

it("answers who has changed what others keep only once they know, and claims and results of the same batch at once", async () => {
  const others = Promise.withResolvers<void>();
  const { queue, sent } = queueByHand([{ version: 7 }], () => others.promise);
  let isChanged = false;
  const change = async (): Promise<void> => {
    await queue.append({ ...write("a"), isKept: true });
    isChanged = true;
  };
  const [changing, other] = [change(), queue.append(write("b"))];
  await turn();
  sent[0]?.commit();
  await other;
  expect(isChanged).toBe(false);
  others.resolve();
  await changing;
});
