import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/runtime/clock.ts";
import {
  type Codec,
  type PendingWrite,
  SEND_WRITES,
  WriteQueue,
} from "../../src/store/libsql/thread/write-queue.ts";
import type { Reply } from "../../src/store/libsql/thread/worker-client.ts";
import { ManualClock } from "../support/manual-clock.ts";

interface Sent {
  readonly names: readonly unknown[];
  readonly rows: number;
  readonly bytes: ArrayBuffer | undefined;
  commit(): void;
  fail(error: Error): void;
}

const LIST: Codec = { pack: (calls) => calls, unpack: (packed) => packed as unknown[] };

/** A queue whose batches are answered by hand. */
function queueByHand(time?: Clock): { queue: WriteQueue; sent: Sent[] } {
  const sent: Sent[] = [];
  const queue = new WriteQueue(
    {
      write: ({ groups, rows, bytes }) =>
        new Promise((resolve, reject) => {
          const names = groups.map(({ columns }) => (columns as unknown[]).flat());
          const commit = (): void =>
            resolve({ value: names.map((packed) => ({ packed })), bytes: undefined });
          sent.push({ names: names.flat(), rows, bytes, commit, fail: reject });
        }),
    },
    { list: LIST },
    time,
  );
  return { queue, sent };
}

function write(name: string, bytes = 0, rows = 1): PendingWrite {
  if (bytes === 0) return { name: "single", call: [name], rows };
  return { name: "list", call: name, rows, payloads: [Buffer.alloc(bytes, name)] };
}

function result(n: number, rows = 1): PendingWrite {
  return { ...write(`${n}`, 0, rows), lingers: true };
}

const values = (all: readonly Reply[]): unknown[] => all.map(({ value }) => value);

function textOf(bytes: ArrayBuffer | undefined): string {
  return Buffer.from(bytes ?? new ArrayBuffer(0)).toString();
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

describe("the write queue", () => {
  it("sends what one turn brings in one batch, and what comes meanwhile as soon as that is answered", async () => {
    const { queue, sent } = queueByHand();
    const first = [queue.append(write("a")), queue.append(write("b"))];
    expect(sent).toHaveLength(0);
    await turn();
    const second = [queue.append(write("c"))];
    await turn();
    second.push(queue.append(write("d")));
    await turn();
    expect(sent.map(({ names }) => names)).toEqual([["a", "b"]]);
    sent[0]?.commit();
    expect(values(await Promise.all(first))).toEqual(["a", "b"]);
    expect(sent.map(({ names }) => names)).toEqual([
      ["a", "b"],
      ["c", "d"],
    ]);
    sent[1]?.commit();
    expect(values(await Promise.all(second))).toEqual(["c", "d"]);
  });

  it("has any number of batches in flight, once there is enough for them", async () => {
    const { queue, sent } = queueByHand();
    const writes = Array.from({ length: 3 * SEND_WRITES }, (_, n) => queue.append(write(`${n}`)));
    expect(sent).toHaveLength(3);
    for (const message of sent.toReversed()) message.commit();
    expect(values(await Promise.all(writes))).toEqual(writes.map((_, n) => `${n}`));
  });

  it("packs the bytes of a batch into one buffer", async () => {
    const { queue, sent } = queueByHand();
    void queue.append(write("b", 3));
    void queue.append(write("c"));
    void queue.append(write("d", 1));
    await turn();
    expect(textOf(sent[0]?.bytes)).toBe("bbbd");
  });

  it("sends within the turn as soon as there is enough, so that the thread works meanwhile", () => {
    const MiB = 1024 * 1024;
    for (const [many, kind] of [
      [SEND_WRITES, write("a")],
      [2, write("b", 0, 500)],
      [1, write("c", MiB)],
    ] as const) {
      const { queue, sent } = queueByHand();
      for (let n = 0; n < many; n += 1) {
        expect(sent).toHaveLength(0);
        void queue.append(kind);
      }
      expect(sent).toMatchObject([{ rows: many * kind.rows }]);
    }
  });

  it("fails all of a batch that failed, and no other", async () => {
    const { queue, sent } = queueByHand();
    const first = queue.append(write("a"));
    await turn();
    const second = queue.append(write("b"));
    sent[0]?.fail(new Error("failed"));
    await expect(first).rejects.toThrow("failed");
    sent[1]?.commit();
    expect((await second).value).toBe("b");
  });

  it("refuses more than it can hold instead of growing without end, and takes more once that is answered", async () => {
    const { queue, sent } = queueByHand();
    const MiB = 1024 * 1024;
    const held = Array.from({ length: 16 }, () => queue.append(write("b", 16 * MiB)));
    await expect(queue.append(write("c", 1))).rejects.toMatchObject({ code: "unavailable" });
    for (const message of sent) message.commit();
    await Promise.all(held);
    await turn();
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
    expect(sent).toHaveLength(1);
    sent[0]?.commit();
    await turn();
    expect(closed).toBe(false);
    sent[1]?.commit();
    await Promise.all([...open, closing]);
  });

  describe("with writes that may linger", () => {
    it("sends each at its turn's end while there are few", async () => {
      const time = new ManualClock(0);
      const { queue, sent } = queueByHand(time);
      for (let n = 0; n < 30; n += 1) {
        await time.advance(1);
        void queue.append(result(n));
        await turn();
        sent.at(-1)?.commit();
      }
      expect(sent).toHaveLength(30);
      expect(time.pending).toBe(0);
    });

    it("sends many together every few milliseconds or with others, and at once again when the load is over", async () => {
      const time = new ManualClock(0);
      const { queue, sent } = queueByHand(time);
      void queue.append(result(0));
      await turn();
      void queue.append(result(1, 900));
      sent[0]?.commit();
      await turn();
      sent[1]?.commit();
      await time.advance(20);
      void queue.append(result(2));
      await turn();
      sent[2]?.commit();
      expect(sent.map(({ names }) => names)).toEqual([["0"], ["1"], ["2"]]);
      // From here on they linger, also past a reply.
      await time.advance(1);
      void queue.append(result(3));
      await time.advance(2);
      void queue.append(result(4));
      await turn();
      expect(sent).toHaveLength(3);
      await time.advance(2);
      expect(sent[3]?.names).toEqual(["3", "4"]);
      void queue.append(result(5));
      sent[3]?.commit();
      await turn();
      expect(sent).toHaveLength(4);
      // Another write takes it along.
      void queue.append(write("a"));
      await turn();
      expect(sent[4]?.names).toEqual(["5", "a"]);
      expect(time.pending).toBe(0);
      sent[4]?.commit();
      await time.advance(20);
      void queue.append(result(6));
      await turn();
      expect(sent[5]?.names).toEqual(["6"]);
    });

    it("does not wait for them when it is closed", async () => {
      const time = new ManualClock(0);
      const { queue, sent } = queueByHand(time);
      void queue.append(result(0, 900));
      await turn();
      sent[0]?.commit();
      await time.advance(20);
      void queue.append(result(1, 900));
      await turn();
      const last = queue.append(result(2));
      expect(sent).toHaveLength(2);
      const closed = queue.close();
      for (const batch of sent) batch.commit();
      await Promise.all([closed, last]);
    });
  });
});
