import { describe, expect, it } from "vitest";
import { FlightQueue, type QueuedWrite } from "../../src/store/libsql/flight-queue.ts";
import type { WireOp } from "../../src/store/libsql/messages.ts";

/** A queue whose flights are landed by hand. */
function queueByHand(): {
  queue: FlightQueue;
  flights: { names: string[]; bytes: ArrayBuffer | undefined; land(): void; abort(error: Error): void }[];
} {
  const flights: ReturnType<typeof queueByHand>["flights"] = [];
  const queue = new FlightQueue(
    (ops, bytes) =>
      new Promise((resolve, reject) => {
        const names = ops.map((op) => ("args" in op ? String(op.args[0]) : op.name));
        const land = (): void => resolve({ outcomes: names.map((ok) => ({ ok })), bytes: undefined });
        flights.push({ names, bytes, land, abort: reject });
      }),
  );
  return { queue, flights };
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

async function settle(): Promise<void> {
  await new Promise((resolve) => setImmediate(resolve));
}

describe("the flight queue", () => {
  it("sends a lone write at once, and what comes meanwhile together", async () => {
    const { queue, flights } = queueByHand();
    const first = queue.add(write("a"));
    expect(flights.map(({ names }) => names)).toEqual([["a"]]);
    const others = ["b", "c", "d"].map((name) => queue.add(write(name)));
    expect(flights).toHaveLength(1);
    flights[0]?.land();
    expect((await first).outcome).toEqual({ ok: "a" });
    await settle();
    expect(flights.map(({ names }) => names)).toEqual([["a"], ["b", "c", "d"]]);
    flights[1]?.land();
    expect((await Promise.all(others)).map(({ outcome }) => outcome)).toEqual([
      { ok: "b" },
      { ok: "c" },
      { ok: "d" },
    ]);
    void queue.add(write("e"));
    expect(flights).toHaveLength(3);
  });

  it("packs the bytes of a flight into one buffer", async () => {
    const { queue, flights } = queueByHand();
    void queue.add(write("a", 2));
    expect(textOf(flights[0]?.bytes)).toBe("aa");
    void queue.add(write("b", 3));
    void queue.add(write("c"));
    void queue.add(write("d", 1));
    flights[0]?.land();
    await settle();
    expect(textOf(flights[1]?.bytes)).toBe("bbbd");
  });

  it("splits what is too much for one flight, and takes a single write of any size", async () => {
    const { queue, flights } = queueByHand();
    const MiB = 1024 * 1024;
    void queue.add(write("a"));
    for (const [name, bytes, rows] of [
      ["b", 5 * MiB, 1],
      ["c", 5 * MiB, 1],
      ["d", 0, 3_000],
      ["e", 0, 2_000],
      ["f", 20 * MiB, 1],
    ] as const) {
      void queue.add(write(name, bytes, rows));
    }
    for (let flight = 0; flight < 5; flight += 1) {
      flights[flight]?.land();
      await settle();
    }
    expect(flights.map(({ names }) => names)).toEqual([["a"], ["b"], ["c", "d"], ["e"], ["f"]]);
  });

  it("fails all of a flight that is lost, and flies on", async () => {
    const { queue, flights } = queueByHand();
    const first = queue.add(write("a"));
    const second = queue.add(write("b"));
    flights[0]?.abort(new Error("lost"));
    await expect(first).rejects.toThrow("lost");
    await settle();
    flights[1]?.land();
    expect((await second).outcome).toEqual({ ok: "b" });
  });

  it("refuses more than it can hold instead of growing without end", async () => {
    const { queue } = queueByHand();
    const MiB = 1024 * 1024;
    void queue.add(write("a"));
    for (let n = 0; n < 16; n += 1) void queue.add({ ...write("b", 16 * MiB) });
    await expect(queue.add(write("c", 1))).rejects.toMatchObject({ code: "unavailable" });
  });

  it("takes nothing more once it is closed, and waits for what it has", async () => {
    const { queue, flights } = queueByHand();
    const begun = [queue.add(write("a")), queue.add(write("b"))];
    let closed = false;
    const closing = queue.close().then(() => (closed = true));
    await expect(queue.add(write("c"))).rejects.toMatchObject({ code: "unavailable" });
    flights[0]?.land();
    await settle();
    expect(closed).toBe(false);
    flights[1]?.land();
    await Promise.all([...begun, closing]);
  });
});
