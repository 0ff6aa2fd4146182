import { once } from "node:events";
import { createServer, type AddressInfo, type Server } from "node:net";
import { afterEach, expect, it } from "vitest";
import { HttpReader } from "./http-reader.ts";
import { runClosedLoop } from "./load-closed.ts";
import { pace } from "./load-paced.ts";

const request = { method: "POST", path: "/", body: "{}" } as const;
let server: Server | undefined;

afterEach(() => server?.close());

/** A server that answers its nth request with the nth status, the last one for all that follow. */
async function serve(...statuses: readonly number[]): Promise<{ port: number; requests: () => number }> {
  let requests = 0;
  server = createServer((socket) => {
    const reader = new HttpReader({
      keepsBody: () => false,
      onMessage: () => {
        const status = statuses[Math.min(requests, statuses.length - 1)];
        requests += 1;
        socket.write(`HTTP/1.1 ${status} So\r\nContent-Length: 9\r\n\r\n{"is":so}`);
      },
    });
    socket.on("data", (chunk: Buffer) => reader.push(chunk));
    socket.on("error", () => socket.destroy());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { port: (server.address() as AddressInfo).port, requests: () => requests };
}

it("counts each answer of a closed loop", async () => {
  const { port, requests } = await serve(201);
  const result = await runClosedLoop({
    port,
    request,
    connections: 4,
    warmUpMs: 0,
    durationMs: 40,
    expect: 201,
  });
  expect(result.answeredInAll).toBe(requests());
  // The last answer of each connection comes after the time that counts.
  expect(result.latency.count).toBe(requests() - 4);
  expect(result.ratePerS).toBe(result.latency.count / 0.04);
});

it("fails a closed loop at the first other status, with the answer", async () => {
  const { port } = await serve(201, 201, 503);
  const options = { port, request, connections: 2, warmUpMs: 0, durationMs: 60_000, expect: 201 };
  await expect(runClosedLoop(options)).rejects.toThrow('/ was answered with 503: {"is":so}');
});

it("sends at the given rate, over all connections in rotation", async () => {
  const { port, requests } = await serve(200);
  const seen: number[] = [];
  const result = await pace(
    {
      port,
      requests: [request, request, request],
      connections: 2,
      ratePerS: 1_000,
      warmUpMs: 10,
      durationMs: 50,
      expect: 200,
    },
    { keepsBodies: false, onSend: (which) => seen.push(which) },
  );
  expect(result).toMatchObject({ answered: 60, unsent: 0 });
  expect(requests()).toBe(60);
  expect(seen.slice(0, 4)).toEqual([0, 1, 2, 0]);
  // Those due in the warm-up are not measured.
  expect(result.latencies.reduce((sum, { count }) => sum + count, 0)).toBe(50);
});

it("fails a paced load at the first other status", async () => {
  const { port } = await serve(200, 404);
  const options = {
    port,
    requests: [request],
    connections: 1,
    ratePerS: 100,
    warmUpMs: 0,
    durationMs: 60_000,
  };
  await expect(pace({ ...options, expect: 200 }, { keepsBodies: false })).rejects.toThrow(
    "answered with 404",
  );
});
