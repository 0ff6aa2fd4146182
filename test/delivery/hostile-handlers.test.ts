import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Answer, type Receiver, startReceiver } from "../support/receiver.ts";
import { until } from "../support/until.ts";
import { Bench } from "./engine-setup.ts";

const MIB = 1024 * 1024;

let bench: Bench;
const cleanups: (() => unknown)[] = [];

beforeEach(async () => {
  bench = await Bench.open();
});

afterEach(async () => {
  await bench.close();
  for (const cleanup of cleanups.splice(0)) await cleanup();
});

async function handlerThat(answer: Answer, tls = false): Promise<Receiver> {
  const receiver = await startReceiver({ tls });
  receiver.answer = () => answer;
  cleanups.push(() => receiver.close());
  return receiver;
}

/** A handler that is no HTTP server at all: each connection is given to `serve`. */
async function socketThat(serve: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    serve(socket);
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  cleanups.push(() => {
    for (const socket of sockets) socket.destroy();
    return new Promise((resolve) => server.close(resolve));
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}

/** Writes for as long as the other side reads, never more than it takes. */
function pour(socket: Socket, chunk: Buffer, most: number, poured: (bytes: number) => void): void {
  let sent = 0;
  const on = (): void => {
    while (sent < most && !socket.destroyed) {
      sent += chunk.byteLength;
      poured(chunk.byteLength);
      if (!socket.write(chunk)) return;
    }
  };
  socket.on("drain", on);
  on();
}

/** A piece every now and then, until the connection is gone. */
function drip(socket: Socket, piece: string): void {
  const timer = setInterval(() => socket.write(piece), 5);
  socket.on("close", () => clearInterval(timer));
}

describe("handlers of every kind", () => {
  it("each get the attempts of the schedule on time, and disturb nobody", { timeout: 60_000 }, async () => {
    const canary = await handlerThat({});
    const closed = await handlerThat({});
    await closed.close();
    let poured = 0;
    const bomb = gzipSync(Buffer.alloc(64 * MIB));
    const status = async (code: number, headers = {}): Promise<string> =>
      (await handlerThat({ status: code, headers, body: "no" })).url;
    const raw = async (text: string): Promise<string> =>
      (await handlerThat({ raw: (socket) => socket.end(text) })).url;

    /** What its last error is then; `undefined` for one that takes the delivery. */
    const hostile: Readonly<Record<string, readonly [url: string, error: string | undefined]>> = {
      "299": [await status(299), undefined],
      "300": [await status(300), "HTTP 300"],
      redirect: [await status(307, { location: canary.url }), "HTTP 307"],
      "400": [await status(400), "HTTP 400"],
      "404": [await status(404), "HTTP 404"],
      "429": [await status(429), "HTTP 429"],
      "500": [await status(500), "HTTP 500"],
      "503": [await status(503, { "retry-after": "nonsense" }), "HTTP 503"],
      "599": [await status(599), "HTTP 599"],
      "HTTP/1.0": [await raw("HTTP/1.0 200 OK\r\n\r\nfine"), undefined],
      "HTTP/1.0 that fails": [await raw("HTTP/1.0 500 Oh\r\n\r\nno"), "HTTP 500"],
      "no HTTP": [await raw("SSH-2.0-OpenSSH_9.2\r\n"), "protocol_error"],
      reset: [(await handlerThat("reset")).url, "connection_reset"],
      closed: [await raw(""), "connection_reset"],
      nobody: [closed.url, "connection_refused"],
      hang: [(await handlerThat("hang")).url, "timeout"],
      "hang at once": [await socketThat(() => {}), "timeout"],
      "drip of headers": [
        await socketThat((socket) => {
          socket.write("HTTP/1.1 200 OK\r\n");
          drip(socket, "x: y\r\n");
        }),
        "timeout",
      ],
      "drip of a body": [
        await socketThat((socket) => {
          socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
          drip(socket, ".");
        }),
        "timeout",
      ],
      "endless headers": [
        await socketThat((socket) => {
          socket.write("HTTP/1.1 200 OK\r\n");
          pour(socket, Buffer.from(`x: ${"y".repeat(60_000)}\r\n`), Infinity, () => {});
        }),
        "protocol_error",
      ],
      "100 MB": [
        await socketThat((socket) => {
          socket.write(`HTTP/1.1 500 Oh\r\nContent-Length: ${100 * MIB}\r\n\r\n`);
          pour(socket, Buffer.alloc(65_536, "x"), 100 * MIB, (bytes) => (poured += bytes));
        }),
        "HTTP 500",
      ],
      "gzip bomb": [
        (await handlerThat({ status: 500, headers: { "content-encoding": "gzip" }, body: bomb })).url,
        "HTTP 500",
      ],
      "bad certificate": [(await handlerThat({}, true)).url, "tls_failed"],
      "no TLS": [(await status(200)).replace("http:", "https:"), "tls_failed"],
    };

    const kinds = await Promise.all(
      Object.entries(hostile).map(async ([kind, [url, error]]) => ({
        kind,
        error,
        subscription: await bench.subscribe(url, 3),
      })),
    );
    const good = await handlerThat({});
    const undisturbed = await bench.subscribe(good.url);
    const engine = bench.engine(
      { timeoutMs: 1_000 },
      { random: { bytes: (count) => new Uint8Array(count), fraction: () => 0 } },
    );
    engine.start();
    const before = process.memoryUsage.rss();
    let most = before;
    for (const { subscription } of kinds) await bench.publish(subscription);
    engine.wake();
    for (let round = 1; round <= 14; round += 1) {
      await bench.publish(undisturbed, 5);
      engine.wake();
      await bench.untilDelivered(undisturbed, round * 5);
      await bench.advance(1_000, 20);
      most = Math.max(most, process.memoryUsage.rss());
    }
    for (const { kind, error, subscription } of kinds) {
      const wanted = error === undefined ? "delivered" : "failed";
      await until(`${kind} to be ${wanted}`, async () => {
        if ((await bench.delivery(subscription)).status === wanted) return true;
        await bench.advance(100, 20);
        return false;
      });
      const { attempts, last_error } = await bench.delivery(subscription);
      expect.soft([kind, last_error]).toEqual([kind, error ?? null]);
      const waits = attempts.slice(1).map(({ started_at }, index) => {
        const { started_at: last, duration_ms } = attempts[index]!;
        return Date.parse(started_at) - Date.parse(last) - duration_ms;
      });
      const planned = error === undefined ? [] : [0, 2_000, 4_000];
      expect.soft(waits.length, kind).toBe(planned.length);
      for (const [index, waitMs] of planned.entries()) {
        expect.soft(waits[index], kind).toBeGreaterThanOrEqual(waitMs);
        expect.soft(waits[index], kind).toBeLessThanOrEqual(waitMs + 250);
      }
    }
    expect(canary.accepted).toBe(0);
    // Four attempts, of each no more than what lies in the buffers of two sockets.
    expect(poured).toBeLessThan(4 * 16 * MIB);
    expect((most - before) / MIB).toBeLessThan(50);
  });
});
