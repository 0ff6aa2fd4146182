import { describe, expect, it } from "vitest";
import type { WireOp } from "../../src/store/libsql/thread/protocol.ts";
import { FlightQueue, type QueuedWrite, SEND_WRITES } from "../../src/store/libsql/thread/write-queue.ts";

interface Sent {
  readonly names: readonly string[];
  readonly rows: number;
  readonly bytes: ArrayBuffer | undefined;
  land(): void;
  abort(error: Error): void;
}

/** A queue whose messages are answered by hand. */
function queueByHand(): { queue: FlightQueue; sent: Sent[] } {
  const sent: Sent[] = [];
  const queue = new FlightQueue(
    ({ ops, rows, bytes }) =>
      new Promise((resolve, reject) => {
        const names = ops.map((op) => ("args" in op ? String(op.args[0]) : op.name));
        const land = (): void => resolve({ outcomes: names.map((ok) => ({ ok })), bytes: undefined });
        sent.push({ names, rows, bytes, land, abort: reject });
      }),
  );
  return { queue, sent };
}

function write(name: string, bytes = 0, rows = 1): QueuedWrite {
  const op: WireOp = { name: "createAction", args: [name] };
  const pack = (buffer: Uint8Array, offset: number): WireOp => {
    buffer.fill(name.charCodeAt(0), offset, offset + bytes);
    return op;
  };
  return { bytes, rows, pack };
}

function textOf(bytes: ArrayBuffer | undefined): string {
  return Buffer.from(bytes ?? new ArrayBuffer(0)).toString();
}

async function turn(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

describe("the flight queue", () => {
  it("sends what one turn brings in one message, and what comes meanwhile as soon as that is answered", async () => {
    const { queue, sent } = queueByHand();
    const first = [queue.add(write("a")), queue.add(write("b"))];
    expect(sent).toHaveLength(0);
    await turn();
    const second = [queue.add(write("c"))];
    await turn();
    second.push(queue.add(write("d")));
    await turn();
    expect(sent.map(({ names }) => names)).toEqual([["a", "b"]]);
    sent[0]?.land();
    expect((await Promise.all(first)).map(({ outcome }) => outcome)).toEqual([{ ok: "a" }, { ok: "b" }]);
    expect(sent.map(({ names }) => names)).toEqual([
      ["a", "b"],
      ["c", "d"],
    ]);
    sent[1]?.land();
    expect((await Promise.all(second)).map(({ outcome }) => outcome)).toEqual([{ ok: "c" }, { ok: "d" }]);
  });

  it("has any number of messages under way, once there is enough for them", async () => {
    const { queue, sent } = queueByHand();
    const writes = Array.from({ length: 3 * SEND_WRITES }, (_, n) => queue.add(write(`${n}`)));
    expect(sent).toHaveLength(3);
    for (const message of sent.toReversed()) message.land();
    expect((await Promise.all(writes)).map(({ outcome }) => outcome)).toEqual(
      writes.map((_, n) => ({ ok: `${n}` })),
    );
  });

  it("packs the bytes of a message into one buffer", async () => {
    const { queue, sent } = queueByHand();
    void queue.add(write("b", 3));
    void queue.add(write("c"));
    void queue.add(write("d", 1));
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
        void queue.add(kind);
      }
      expect(sent).toMatchObject([{ rows: many * kind.rows }]);
    }
  });

  it("fails all of a message that is lost, and no other", async () => {
    const { queue, sent } = queueByHand();
    const first = queue.add(write("a"));
    await turn();
    const second = queue.add(write("b"));
    sent[0]?.abort(new Error("lost"));
    await expect(first).rejects.toThrow("lost");
    sent[1]?.land();
    expect((await second).outcome).toEqual({ ok: "b" });
  });

  it("refuses more than it can hold instead of growing without end, and takes more once that is answered", async () => {
    const { queue, sent } = queueByHand();
    const MiB = 1024 * 1024;
    const held = Array.from({ length: 16 }, () => queue.add(write("b", 16 * MiB)));
    await expect(queue.add(write("c", 1))).rejects.toMatchObject({ code: "unavailable" });
    for (const message of sent) message.land();
    await Promise.all(held);
    await turn();
    const after = queue.add(write("d", 1));
    await turn();
    sent.at(-1)?.land();
    expect((await after).outcome).toEqual({ ok: "d" });
  });

  it("takes nothing more once it is closed, and waits for what it has", async () => {
    const { queue, sent } = queueByHand();
    const first = queue.add(write("a"));
    await turn();
    const begun = [first, queue.add(write("b"))];
    let closed = false;
    const closing = queue.close().then(() => (closed = true));
    await expect(queue.add(write("c"))).rejects.toMatchObject({ code: "unavailable" });
    expect(sent).toHaveLength(1);
    sent[0]?.land();
    await turn();
    expect(closed).toBe(false);
    sent[1]?.land();
    await Promise.all([...begun, closing]);
  });
});
