import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { H3 } from "h3";
import { describe, expect, onTestFinished, test } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import { noticeEnd } from "../../src/http/connections.ts";
import { serveHttp } from "../../src/http/server.ts";
import type { HttpLimits, HttpListener, ServeOptions } from "../../src/http/server.ts";
import { silentLogger } from "../../src/runtime/logger.ts";
import { TEST_CERTIFICATE, TEST_KEY } from "../support/tls-fixture.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { RawConnection } from "./raw-connection.ts";

const CERTIFICATE = { cert: Buffer.from(TEST_CERTIFICATE), key: Buffer.from(TEST_KEY), endsMs: 0 };

async function serve(options: Partial<ServeOptions> = {}): Promise<HttpListener> {
  const listener = await serveHttp({
    app: new H3().get("/here", () => "here"),
    host: "127.0.0.1",
    port: 0,
    ...options,
  });
  onTestFinished(() => listener.close(0));
  return listener;
}

async function refused(options: Partial<ServeOptions>): Promise<EvregError> {
  const error: unknown = await serve(options).catch((failure: unknown) => failure);
  expect(error).toBeInstanceOf(EvregError);
  return error as EvregError;
}

/** An app whose one route answers when told. */
function holdingApp(): { app: H3; arrived: Promise<void>; release: () => void } {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const { promise: arrived, resolve: arrive } = Promise.withResolvers<void>();
  const app = new H3()
    .all("/slow", async () => {
      arrive();
      await released;
      return "done";
    })
    .get("/fast", () => "fast");
  return { app, arrived, release };
}

const GET = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`;
const POST = (path: string): string =>
  `POST ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 0\r\n\r\n`;

describe("a connection on which no request comes, or not all of it", () => {
  // By the machine's clock, so on a busy machine the steps of a test must not take as long.
  const limits = { headersTimeoutMs: 400, requestTimeoutMs: 400, checkEveryMs: 10 };

  test.each([false, true])(
    "is closed, silent from the start or within a request; with TLS: %s",
    async (tls) => {
      const { app } = holdingApp();
      const { port } = await serve({ app, limits, ...(tls ? { certificate: CERTIFICATE } : {}) });
      const opening = [1, 2, 3].map(() => RawConnection.open(port, { tls }));
      const [silent, first, later] = await Promise.all(opening);
      const cut = "POST /slow HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 2\r\n\r\n{";
      first!.send(cut);
      later!.send(GET("/fast"));
      expect((await later!.answer()).status).toBe(200);
      later!.send(cut);
      for (const raw of [silent!, first!, later!]) {
        expect((await raw.answer()).status).toBe(408);
        await raw.closed();
      }
    },
  );

  test.each([false, true])("is kept while its caller waits for an answer; with TLS: %s", async (tls) => {
    const { app, release } = holdingApp();
    const { port } = await serve({ app, limits, ...(tls ? { certificate: CERTIFICATE } : {}) });
    const waiting = await RawConnection.open(port, { tls });
    waiting.send(GET("/slow"));
    // Two that are silent from now on, one after the other, are cut when this ends.
    for (let round = 0; round < 2; round += 1) await (await RawConnection.open(port, { tls })).closed();
    release();
    expect((await waiting.answer()).status).toBe(200);
  });

  test("is kept between two requests", async () => {
    const listener = await serve({ app: holdingApp().app, limits });
    const raw = await idleAt(listener);
    // One that is silent from now on is cut when this ends.
    await (await RawConnection.open(listener.port)).closed();
    raw.send(GET("/fast"));
    expect((await raw.answer()).status).toBe(200);
  });
});

describe("listening", () => {
  test("port 0 means any free port, and the URL has it", async () => {
    const listener = await serve();
    expect(listener.url).toBe(`http://127.0.0.1:${listener.port}`);
    expect(listener.addresses).toEqual([`127.0.0.1:${listener.port}`]);
    expect(await (await fetch(`${listener.url}/here`)).text()).toBe("here");
  });

  test("a port in use is refused with the address, and no other is chosen", async () => {
    const other = createServer();
    await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
    onTestFinished(() => void other.close());
    const { port } = other.address() as AddressInfo;
    const error = await refused({ port });
    expect(error.code).toBe("conflict");
    expect(error.message).toContain(`127.0.0.1:${port}`);
    expect(error.message).toContain("--port");
  });

  test.each([
    ["an address of another machine", { host: "192.0.2.1", port: 7480 }, "192.0.2.1"],
    ["what is no host", { host: "not a host" }, "not a host"],
    ["an empty host", { host: "" }, "--host"],
    ["a port that listhen would replace", { port: 6666 }, "6666"],
  ])("%s is refused", async (_what, options, part) => {
    const { code, message } = await refused(options);
    expect([code, message]).toEqual(["usage", expect.stringContaining(part)]);
  });

  test("on all addresses, the URL is one that works, and every address is listed", async () => {
    const listener = await serve({ host: "0.0.0.0" });
    expect(listener.url).toBe(`http://127.0.0.1:${listener.port}`);
    expect(listener.addresses).toContain(`127.0.0.1:${listener.port}`);
    expect(await (await fetch(`${listener.url}/here`)).text()).toBe("here");
  });

  test("at a name, the addresses are those it is bound to", async () => {
    const listener = await serve({ host: "localhost" });
    const { port } = listener;
    expect([[`127.0.0.1:${port}`], [`[::1]:${port}`]]).toContainEqual(listener.addresses);
    expect(listener.url).toBe(`http://${listener.addresses[0]}`);
    expect(await (await fetch(`${listener.url}/here`)).text()).toBe("here");
  });

  test("of two servers on one port one listens, and the other reports why not", async () => {
    const probe = await serve();
    await probe.close(0);
    const both = await Promise.allSettled([serve({ port: probe.port }), serve({ port: probe.port })]);
    expect(both.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
    const failed = both.find(({ status }) => status === "rejected") as PromiseRejectedResult;
    expect(failed.reason).toMatchObject({ code: "conflict" });
  });
});

/** A server with a request under way, on a connection of its own. */
async function busy(options: Partial<ServeOptions> = {}) {
  const { app, arrived, release } = holdingApp();
  const listener = await serve({ app, ...options });
  const raw = await RawConnection.open(listener.port);
  raw.send(GET("/slow"));
  await arrived;
  return { app, listener, raw, release };
}

/** A connection on which a request was answered. */
async function idleAt({ port }: HttpListener): Promise<RawConnection> {
  const raw = await RawConnection.open(port);
  raw.send(GET("/fast"));
  expect((await raw.answer()).status).toBe(200);
  return raw;
}

describe("closing", () => {
  test("a running request is finished with Connection: close, new ones are refused, and none is done behind it", async () => {
    const { app, listener, raw, release } = await busy();
    let done = 0;
    app.post("/done", () => String((done += 1)));
    const closed = listener.close(60_000);
    await expect(fetch(`${listener.url}/fast`)).rejects.toThrow();
    raw.send(POST("/done"));
    // It has been read by then.
    for (let turn = 0; turn < 10; turn += 1) await new Promise(setImmediate);
    release();
    const { status, headers } = await raw.answer();
    expect([status, headers["connection"]]).toEqual([200, "close"]);
    await raw.closed();
    await closed;
    expect(done).toBe(0);
  });

  test("an answer whose caller has not taken all of it yet is finished, and idle connections end at once", async () => {
    const bytes = 64 * 1024 * 1024;
    const { app } = holdingApp();
    app.get("/large", () => "x".repeat(bytes));
    const listener = await serve({ app });
    const idle = await idleAt(listener);
    const caller = connect(listener.port, "127.0.0.1");
    caller.write(GET("/large"));
    let received = 0;
    const ended = new Promise((resolve) => caller.once("close", resolve));
    await new Promise((resolve) => caller.once("readable", resolve));
    const closed = listener.close(60_000);
    await idle.closed();
    caller.on("data", (chunk) => (received += chunk.length));
    await Promise.all([closed, ended]);
    expect(received).toBeGreaterThan(bytes);
  });

  test("what still runs at the deadline is cut, at the earlier one of two", async () => {
    const clock = new ManualClock();
    const { listener, raw } = await busy({ clock });
    const closed = [listener.close(60_000), listener.close(5_000)];
    await clock.advance(4_999);
    expect(raw.pending).toBe("");
    await clock.advance(1);
    await raw.closed();
    await Promise.all(closed);
    expect(clock.pending).toBe(0);
  });
});

describe("ended connections", () => {
  test.each([
    ["what is not HTTP", "nonsense\r\n\r\n", 400],
    ["nothing in time", "", 408],
  ])(
    "after %s a peer that does not close keeps its place for at most two seconds",
    async (_, sent, status) => {
      const clock = new ManualClock();
      // By the machine's clock: not for those that are not about it.
      const headersTimeoutMs = sent === "" ? 400 : 60_000;
      const limits = { maxConnections: 1, reserved: 0, headersTimeoutMs, checkEveryMs: 20 };
      const listener = await serve({ app: holdingApp().app, clock, limits });
      const raw = await RawConnection.open(listener.port, { halfOpen: true });
      raw.send(sent);
      expect((await raw.answer()).status).toBe(status);
      await clock.advance(1_999);
      await (await RawConnection.open(listener.port)).closed();
      await clock.advance(1);
      await idleAt(listener);
      raw.destroy();
    },
  );

  test.each([false, true])(
    "a request that comes on a new connection as the server ends is answered, and silence ends soon; with TLS: %s",
    async (tls) => {
      const clock = new ManualClock();
      const certificate = tls ? { certificate: CERTIFICATE } : {};
      const listener = await serve({ app: holdingApp().app, clock, ...certificate });
      const silent = await RawConnection.open(listener.port, { tls });
      const late = await RawConnection.open(listener.port, { tls });
      const other = await RawConnection.open(listener.port, { tls });
      other.send(GET("/fast"));
      await other.answer();
      const closed = listener.close(60_000);
      late.send(GET("/fast"));
      const { status, headers } = await late.answer();
      expect([status, headers["connection"]]).toEqual([200, "close"]);
      await clock.advance(250);
      await closed;
      await silent.closed();
    },
  );
});

describe("requests of one connection", () => {
  test.each([
    ["at once", false, "content-length: 1800000", "x".repeat(1_800_000)],
    ["in small chunks", false, "transfer-encoding: chunked", `${"1\r\nx\r\n".repeat(300_000)}0\r\n\r\n`],
    [
      "in small chunks, also where the end is to be noticed",
      true,
      "transfer-encoding: chunked",
      `${"1\r\nx\r\n".repeat(300_000)}0\r\n\r\n`,
    ],
  ])(
    "are worked on one at a time, and a body that comes %s is read once it is its turn",
    async (_, notices, header, body) => {
      const { promise: held, resolve: release } = Promise.withResolvers<string>();
      const { promise: reading, resolve: read } = Promise.withResolvers<Socket>();
      let started = 0;
      const { app } = holdingApp();
      app.get("/held", ({ runtime }) => {
        started += 1;
        read(runtime!.node!.req.socket);
        return held;
      });
      app.post("/body", ({ req }) => {
        started += 1;
        return req.text().then(({ length }) => String(length));
      });
      const listener = await serve({ app });
      const raw = await RawConnection.open(listener.port);
      raw.send(GET("/held"));
      const socket = await reading;
      if (notices) noticeEnd(socket);
      raw.send(`POST /body HTTP/1.1\r\nhost: a\r\n${header}\r\n\r\n`);
      raw.send(body);
      for (let turn = 0; turn < 100; turn += 1) (await idleAt(listener)).destroy();
      expect(started).toBe(1);
      expect(socket.bytesRead).toBeLessThan(200_000);
      release("at last");
      expect((await raw.answer()).body).toBe("at last");
      expect((await raw.answer()).body).toBe(String(body.match(/x/g)!.length));
      raw.send(GET("/fast"));
      expect((await raw.answer()).status).toBe(200);
      raw.destroy();
    },
  );

  test("end the connection where more than 16 are sent ahead", async () => {
    const listener = await serve({ app: holdingApp().app });
    const raw = await RawConnection.open(listener.port);
    raw.send(GET("/slow").repeat(18));
    await raw.closed();
    expect(raw.pending).toBe("");
    (await idleAt(listener)).destroy();
  });
});

async function statusOf(raw: RawConnection, request: string): Promise<number> {
  raw.send(request);
  return (await raw.answer()).status;
}

async function crowded(limits: Partial<HttpLimits>): Promise<{
  open: (from: string, request?: string) => Promise<RawConnection>;
  warnings: object[];
}> {
  const warnings: object[] = [];
  const logger = { ...silentLogger, warn: (fields: object) => warnings.push(fields) };
  const { app } = holdingApp();
  const listener = await serve({ app, logger, clock: new ManualClock(), limits });
  const open = async (from: string, request = GET("/fast")): Promise<RawConnection> => {
    const raw = await RawConnection.open(listener.port, { from });
    onTestFinished(() => raw.destroy());
    if (request !== "") expect(await statusOf(raw, request)).toBe(200);
    return raw;
  };
  return { open, warnings };
}

// Elsewhere than on Linux this machine has one loopback address only.
describe.skipIf(process.platform !== "linux")("more connections than allowed", () => {
  test("more are refused, and the log says so once; this machine has a few for itself", async () => {
    const { open, warnings } = await crowded({ maxConnections: 2, reserved: 1 });
    const own = [await open("127.0.0.2"), await open("127.0.0.3")];
    await (await open("127.0.0.3", "")).closed();
    const here = await open("127.0.0.1");
    await (await open("127.0.0.1", "")).closed();
    expect(warnings).toEqual([{ maxConnections: 2, refused: 1 }]);
    for (const raw of own) expect(await statusOf(raw, GET("/fast"))).toBe(200);
    own[0]!.destroy();
    here.destroy();
    await expect
      .poll(async () => {
        const next = await open("127.0.0.2", "");
        return Promise.race([next.closed().then(() => "refused"), statusOf(next, GET("/fast"))]);
      })
      .toBe(200);
  });

  test("an address has at most its share, and this machine is exempt", async () => {
    const { open, warnings } = await crowded({ maxConnections: 6, maxOfAddress: 2, reserved: 0 });
    for (let count = 0; count < 2; count += 1) await open("127.0.0.2");
    await (await open("127.0.0.2", "")).closed();
    await open("127.0.0.3");
    for (let count = 0; count < 3; count += 1) await open("127.0.0.1");
    expect(warnings).toEqual([{ maxConnections: 6, refused: 1 }]);
  });

  test("an encrypted connection gives its place back", async () => {
    const limits = { maxConnections: 1, reserved: 0 };
    const { port } = await serve({ certificate: CERTIFICATE, limits, clock: new ManualClock() });
    const first = await RawConnection.open(port, { tls: true });
    await expect(RawConnection.open(port, { tls: true })).rejects.toThrow();
    first.destroy();
    await expect
      .poll(() => RawConnection.open(port, { tls: true }).then((raw) => raw.destroy()))
      .toBe(undefined);
  });
});
