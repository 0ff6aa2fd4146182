import type { LookupAddress } from "node:dns";
import { type AddressInfo, createServer, type Socket } from "node:net";
import timers from "node:timers/promises";
import { createServer as createTlsServer } from "node:tls";
import { gzipSync } from "node:zlib";
import { afterEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { HostNames } from "../../src/delivery/host-names.ts";
import type { SendResult } from "../../src/delivery/exchange.ts";
import { type Sender, trusting } from "../../src/delivery/sender.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { openReceiver } from "../support/open-receiver.ts";
import type { Answer } from "../support/receiver.ts";
import { EXPIRED_CERTIFICATE, TEST_CERTIFICATE, TEST_KEY } from "../support/tls-fixture.ts";
import { until } from "../support/until.ts";
import { names, newSender, post, postTimed, REFUSED, type SenderSetup } from "./sender-setup.ts";

afterEach(() => void vi.unstubAllEnvs());

function senderWith(setup: SenderSetup = {}): Sender {
  const sender = newSender({ allowNetworks: ["127.0.0.0/8", "::1/128"], ...setup });
  onTestFinished(() => sender.close());
  return sender;
}

describe("a request", () => {
  it("is a POST with the headers and the bytes given, and nothing a browser would add", async () => {
    const receiver = await openReceiver();
    const body = Buffer.from('{"payload":{"é":1.10}}');
    const headers = { "Content-Type": "application/json", "X-Evreg-Event": "a.b" };
    const url = `${receiver.url}?a=1&b=%20#x`;
    const sent = await new Promise((resolve) => senderWith().send({ url, headers, body }, resolve));
    expect(sent).toMatchObject({ statusCode: 200 });
    const [request] = receiver.requests;
    expect(request?.method).toBe("POST");
    expect(request?.path).toBe("/hook?a=1&b=%20");
    expect(request?.body.equals(body)).toBe(true);
    expect(Object.keys(request?.headers ?? {}).toSorted()).toEqual(
      ["connection", "content-length", "content-type", "host", "x-evreg-event"].toSorted(),
    );
  });

  it("reuses its connections after small answers", async () => {
    const clock = new ManualClock();
    const receiver = await openReceiver();
    const sender = senderWith({ clock });
    for (const answer of [{ body: "ok" }, { status: 500, body: "x".repeat(9_000) }, { status: 204 }, {}]) {
      for (let time = 0; time < 5; time += 1) {
        receiver.script(answer);
        await post(sender, receiver.url);
        expect(clock.pending).toBe(0);
      }
    }
    expect(receiver.accepted).toBe(1);
  });

  it("is not sent unencrypted where that is not allowed, whatever was allowed at registration", async () => {
    const receiver = await openReceiver();
    expect(await post(senderWith({ allowHttp: false }), receiver.url)).toEqual(REFUSED);
    expect(receiver.accepted).toBe(0);
  });

  it("ignores proxies of the environment", async () => {
    const proxy = await openReceiver();
    const receiver = await openReceiver();
    vi.stubEnv("HTTP_PROXY", `http://127.0.0.1:${proxy.port}`);
    vi.stubEnv("NODE_USE_ENV_PROXY", "1");
    expect(await post(senderWith(), receiver.url)).toMatchObject({ statusCode: 200 });
    expect(proxy.accepted).toBe(0);
  });
});

/** Writes `a` behind a beginning until the connection is gone. */
function writeForEver(socket: Socket, beginning: string, written: { bytes: number; isOver: boolean }): void {
  const chunk = Buffer.alloc(65_536, "a");
  const write = (): void => {
    while (socket.writable && socket.write(chunk)) written.bytes += chunk.byteLength;
  };
  socket.on("drain", write);
  socket.on("close", () => (written.isOver = true));
  socket.write(beginning);
  write();
}

/** How a request ends that is answered so. */
async function answered(answer: Answer): Promise<SendResult> {
  const receiver = await openReceiver();
  receiver.script(answer);
  return post(senderWith(), receiver.url);
}

/** The same for an answer that begins so and never ends, of which little is read. */
async function answeredForEver(beginning: string): Promise<SendResult> {
  const written = { bytes: 0, isOver: false };
  const sent = await answered({ raw: (socket) => writeForEver(socket, beginning, written) });
  await until("the connection to be dropped", () => written.isOver);
  // What the two kernels' buffers hold.
  expect(written.bytes).toBeLessThan(20_000_000);
  return sent;
}

const CHUNKED = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

describe("an answer", () => {
  it.each([200, 201, 204, 299, 400, 404, 410, 429, 500, 503])("%i is reported as it is", async (status) => {
    expect(await answered({ status })).toEqual({ statusCode: status });
  });

  it.each([301, 302, 303, 307, 308])("%i is not followed as a redirect", async (status) => {
    const other = await openReceiver();
    expect(await answered({ status, headers: { location: other.url } })).toMatchObject({
      statusCode: status,
    });
    expect(other.accepted).toBe(0);
  });

  it("is read for its headers and its first 2,048 bytes", async () => {
    const receiver = await openReceiver();
    receiver.script({ status: 503, headers: { "Retry-After": "7" }, body: "ä".repeat(1_200) });
    const { headers, ...sent } = await postTimed(senderWith(), receiver.url);
    expect(sent).toMatchObject({ statusCode: 503, response: "ä".repeat(1_024) });
    expect(headers).toMatchObject({ "retry-after": "7" });
  });

  it.each([
    ["a mark at its beginning", Buffer.from("\ufeffa"), "\ufeffa"],
    [
      "what is no UTF-8",
      Buffer.from([0x61, 0xff, 0xc3, 0x28, 0xed, 0xa0, 0x80]),
      "a\ufffd\ufffd(\ufffd\ufffd\ufffd",
    ],
  ])("is read as text with %s", async (_what, body, response) => {
    expect(await answered({ body })).toEqual({ statusCode: 200, response });
  });

  it("is not decompressed, so a bomb stays small", async () => {
    const body = gzipSync(Buffer.alloc(50_000_000));
    const sent = await answered({ headers: { "content-encoding": "gzip" }, body });
    expect(sent.statusCode).toBe(200);
    expect(Buffer.byteLength(sent.response!)).toBeLessThanOrEqual(3 * 2_048);
  });

  it("is cut after a few kilobytes", async () => {
    const sent = await answeredForEver("HTTP/1.1 200 OK\r\nContent-Length: 104857600\r\n\r\n");
    expect(sent).toMatchObject({ statusCode: 200, response: "a".repeat(2_048) });
  });

  it.each([
    ["a reason phrase", "HTTP/1.1 200 "],
    ["a header's name", "HTTP/1.1 200 OK\r\n"],
    ["a header's value", "HTTP/1.1 200 OK\r\nA: "],
    ["the extension of a chunk", `${CHUNKED}5;a=`],
    ["a trailer", `${CHUNKED}2\r\nok\r\n0\r\nA: `],
    ["the reason phrase of an informational one", "HTTP/1.1 103 "],
  ])("without end in %s is a protocol error, and little of it is read", async (_name, beginning) => {
    expect(await answeredForEver(beginning)).toEqual({ errorCode: "protocol_error" });
  });

  it("of many small chunks is read up to the limit", async () => {
    const chunks = `1;${"x".repeat(40)}\r\na\r\n`.repeat(1_000);
    const sent = await answered({ raw: (socket) => socket.write(`${CHUNKED}${chunks}0\r\n\r\n`) });
    expect(sent).toMatchObject({ response: "a".repeat(1_000) });
  });

  it.each([
    ["that is not HTTP", "SSH-2.0-OpenSSH_9.9\r\n"],
    ["with a broken status line", "HTTP/1.1 abc\r\n\r\n"],
    ["with two lengths", "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"],
    ["with a broken chunk", `${CHUNKED}zz\r\n`],
    ["that switches protocols", "HTTP/1.1 101 Switch\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"],
    ["with a status below 100", "HTTP/1.1 099 None\r\nContent-Length: 0\r\n\r\n"],
    ["with too many informational ones before it", "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(10_000)],
    ["with headers of 100 kB", `HTTP/1.1 200 OK\r\nA: ${"a".repeat(100_000)}\r\n\r\n`],
    ["with a million small headers", `HTTP/1.1 200 OK\r\n${"A: b\r\n".repeat(1_000_000)}\r\n`],
  ])("%s is a protocol error", async (_name, text) => {
    expect(await answered({ raw: (socket) => socket.write(text) })).toEqual({ errorCode: "protocol_error" });
  });

  it("that ends too early is an error, not a success", async () => {
    const text = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nab";
    const sent = await answered({ raw: (socket) => socket.end(text) });
    expect(sent.errorCode).toEqual(expect.any(String));
  });

  it("without a length ends with its connection", async () => {
    const sent = await answered({ raw: (socket) => socket.end("HTTP/1.0 200 OK\r\n\r\nfine") });
    expect(sent).toMatchObject({ statusCode: 200, response: "fine" });
  });
});

describe("an answer of more than is stored", () => {
  it.each([
    ["stops", (socket: Socket) => void socket],
    ["ends too early", (socket: Socket) => socket.end()],
  ])("counts, also where it %s", async (_, then) => {
    const clock = new ManualClock();
    const receiver = await openReceiver();
    receiver.script({
      raw(socket) {
        socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\n${"a".repeat(3_000)}`);
        then(socket);
      },
    });
    const sent = post(senderWith({ clock, timeoutMs: 10_000 }), receiver.url);
    await receiver.received(1);
    await new Promise((resolve) => void setTimeout(resolve, 50));
    await clock.advance(10_000);
    expect(await sent).toEqual({ statusCode: 200, response: "a".repeat(2_048) });
  });
});

describe("the deadline", () => {
  it.each([
    ["a wait for headers", "hang"],
    ["a body that arrives slowly, though its status was 200", `${CHUNKED}1\r\na\r\n1\r\nb\r\n`],
    ["a body that stops in the middle", "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nabc"],
  ])("limits %s", async (_what, text) => {
    const clock = new ManualClock();
    const receiver = await openReceiver();
    receiver.script(text === "hang" ? text : { raw: (socket) => socket.write(text) });
    const sent = post(senderWith({ clock, timeoutMs: 10_000 }), receiver.url);
    await receiver.received(1);
    await clock.advance(9_999);
    expect(receiver.open).toBe(1);
    await clock.advance(1);
    expect(await sent).toEqual({ errorCode: "timeout" });
    await until("the connection to be dropped", () => receiver.open === 0);
    expect(clock.pending).toBe(0);
  });

  it("limits a name look-up, and nothing is sent when that succeeds later", async () => {
    const clock = new ManualClock();
    const receiver = await openReceiver();
    let answer: (() => void) | undefined;
    const resolve: HostNames["resolve"] = () => {
      const lookUp = Promise.withResolvers<LookupAddress[]>();
      answer = () => lookUp.resolve([{ address: "127.0.0.1", family: 4 }]);
      return lookUp.promise;
    };
    const sender = senderWith({ clock, timeoutMs: 10_000, resolve });
    const sent = post(sender, `http://slow.test:${receiver.port}/hook`);
    await until("the look-up to begin", () => answer !== undefined);
    await clock.advance(10_000);
    expect(await sent).toEqual({ errorCode: "timeout" });
    answer?.();
    // The late connection may open, but the next request is the first the handler sees.
    const direct = await post(sender, receiver.url);
    expect(direct).toMatchObject({ statusCode: 200 });
    expect(receiver.requests).toHaveLength(1);
  });

  it("includes connecting", async () => {
    // A listener whose queue is full answers no more connections.
    const full = createServer();
    await new Promise<void>((resolve) => {
      full.listen({ port: 0, host: "127.0.0.1", backlog: 0 }, resolve);
    });
    onTestFinished(() => void full.close());
    const clock = new ManualClock();
    const tls = senderWith({ clock, timeoutMs: 10_000 });
    // The connection opens; the TLS handshake that must follow never does.
    const sent = post(tls, `https://127.0.0.1:${(full.address() as AddressInfo).port}/`);
    await until("the connection to open", () => tls.connections() === 1);
    await clock.advance(10_000);
    expect(await sent).toEqual({ errorCode: "timeout" });
  });
});

describe("closing", () => {
  it("interrupts what is in flight, and what has not started", async () => {
    const receiver = await openReceiver();
    receiver.script("hang");
    const sender = senderWith();
    const request = { url: receiver.url, headers: {}, body: Buffer.from("{}") };
    const results: SendResult[] = [];
    const send = () => sender.send(request, (result) => results.push(result));
    send();
    await receiver.received(1);
    // On a connection that is still to be made.
    send();
    sender.close();
    const interrupted = { errorCode: "interrupted" };
    expect(results).toMatchObject([interrupted, interrupted]);
    expect(sender.connections()).toBe(0);
    await until("the connections to be dropped", () => receiver.open === 0);
    expect(receiver.requests).toHaveLength(1);
  });
});

const slowResolve: HostNames["resolve"] = () => timers.setTimeout(40, [{ address: "127.0.0.1", family: 4 }]);

describe("timings of a request", () => {
  it("are reported for a request with a new connection, and for no other", async () => {
    const receiver = await openReceiver({ tls: true });
    const clock = new ManualClock();
    const sender = senderWith({ clock, secureContext: trusting(TEST_CERTIFICATE), resolve: slowResolve });
    const url = `https://handler.test:${receiver.port}/`;
    const after = new Promise((resolved) => void setTimeout(resolved, 30));
    receiver.script({ after });
    const first = await postTimed(sender, url);
    expect(first.connection?.dnsMs).toBeGreaterThanOrEqual(35);
    expect(first.connection?.connectMs).toBeGreaterThan(0);
    expect(first.connection?.firstByteMs).toBeGreaterThan(0);
    for (let time = 0; time < 10; time += 1) {
      expect((await postTimed(sender, url)).connection).toBeUndefined();
    }
    expect(receiver.accepted).toBe(1);
  });

  it("are reported as far as it came", async () => {
    const receiver = await openReceiver();
    receiver.script("reset");
    const { connection } = await postTimed(senderWith(), receiver.url);
    expect(connection).toEqual({
      dnsMs: undefined,
      connectMs: expect.any(Number),
      firstByteMs: undefined,
    });
    await receiver.close();
    expect(await postTimed(senderWith(), receiver.url)).toEqual({
      errorCode: "connection_refused",
    });
  });
});

describe("a failed connection", () => {
  it("cannot be looked up", async () => {
    expect(await post(senderWith(), "https://nothing.test/")).toEqual({ errorCode: "dns_failed" });
  });

  it("is tried at a second address when the first does not answer", async () => {
    const receiver = await openReceiver();
    const sender = senderWith({ resolve: names({ "two.test": ["127.0.0.2", "127.0.0.1"] }) });
    expect(await post(sender, `http://two.test:${receiver.port}/`)).toMatchObject({ statusCode: 200 });
  });
});

/** What a handler does once it has read a request; `plain` is the connection under that of TLS. */
type Closing = (socket: Socket, answer: string, plain: Socket) => void;

/** A handler that answers each request with 200, and then ends the connection without having said so. */
async function handlerThatCloses(close: Closing, tls: boolean): Promise<{ url: string; seen: string[] }> {
  const seen: string[] = [];
  const plain = new Map<number | undefined, Socket>();
  const serve = (socket: Socket): void => {
    const under = plain.get(socket.remotePort)!;
    let text = "";
    socket.on("error", () => {});
    onTestFinished(() => void socket.destroy());
    socket.on("data", (chunk: Buffer) => {
      text += chunk.toString();
      for (let end = text.indexOf("}"); end >= 0; end = text.indexOf("}")) {
        seen.push(text.slice(text.indexOf("{") + 1, end));
        text = text.slice(end + 1);
        close(socket, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", under);
      }
    });
  };
  const server = tls
    ? createTlsServer({ key: TEST_KEY, cert: TEST_CERTIFICATE }, serve)
    : createServer(serve);
  // Before `serve`, which is told of the same ones without TLS.
  server.prependListener("connection", (socket: Socket) => {
    socket.on("error", () => {});
    plain.set(socket.remotePort, socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  return { url: `${tls ? "https" : "http"}://127.0.0.1:${port}/`, seen };
}

describe("a handler that closes after it has answered", () => {
  const closings: Record<string, Closing> = {
    "with its answer": (socket, answer) => socket.end(answer),
    "with a reset": (socket, answer, plain) => {
      socket.write(answer);
      setImmediate(() => plain.resetAndDestroy());
    },
  };
  const ways = Object.keys(closings).flatMap((how) => [[how, false] as const, [how, true] as const]);

  it.each(ways)("%s gets each request once (TLS: %s)", async (how, tls) => {
    const { url, seen } = await handlerThatCloses(closings[how]!, tls);
    // Many at once, and a request as soon as another has ended.
    const sender = senderWith({ secureContext: trusting(TEST_CERTIFICATE) });
    const sent = Array.from({ length: 40 }, (_, number) => post(sender, url, `{${number}}`));
    const rows = Array.from({ length: 4 }, async (_, row) => {
      for (let number = 40 + row * 10; number < 50 + row * 10; number += 1) {
        const sending = post(sender, url, `{${number}}`);
        sent.push(sending);
        await sending;
      }
    });
    await Promise.all(rows);
    expect((await Promise.all(sent)).map((result) => "statusCode" in result && result.statusCode)).toEqual(
      Array.from(sent, () => 200),
    );
    expect(seen.map(Number).toSorted((one, other) => one - other)).toEqual([...sent.keys()]);
  });
});

describe("TLS", () => {
  it("is verified against the name of the handler", async () => {
    const receiver = await openReceiver({ tls: true });
    const resolve = names({ "handler.test": ["127.0.0.1"], "other.test": ["127.0.0.1"] });
    const sender = senderWith({ secureContext: trusting(TEST_CERTIFICATE), resolve });
    for (const [host, result] of [
      ["handler.test", { statusCode: 200 }],
      ["127.0.0.1", { statusCode: 200 }],
      ["other.test", { errorCode: "tls_failed", tlsReason: "wrong_name" }],
    ] as const) {
      expect(await post(sender, `https://${host}:${receiver.port}/`), host).toEqual(result);
    }
  });

  it.each([
    ["an untrusted certificate", "self_signed", {}, undefined],
    ["an expired one, whoever signed it", "expired", { cert: EXPIRED_CERTIFICATE }, EXPIRED_CERTIFICATE],
  ])("refuses %s, also where the environment turns verification off", async (_what, tlsReason, own, ca) => {
    const receiver = await openReceiver({ tls: true, ...own });
    vi.stubEnv("NODE_TLS_REJECT_UNAUTHORIZED", "0");
    const sender = senderWith(ca === undefined ? {} : { secureContext: trusting(ca) });
    expect(await post(sender, receiver.url)).toEqual({ errorCode: "tls_failed", tlsReason });
    expect(receiver.requests).toHaveLength(0);
  });

  it("fails where the other side does not speak TLS", async () => {
    const receiver = await openReceiver();
    const sent = await post(senderWith(), `https://127.0.0.1:${receiver.port}/`);
    expect(sent).toEqual({ errorCode: "tls_failed", tlsReason: "handshake_failed" });
  });
});

describe("idle connections", () => {
  it("are closed, one and all", async () => {
    const sender = senderWith({ keepAliveMs: 30 });
    const receivers = await Promise.all(Array.from({ length: 50 }, () => openReceiver()));
    await Promise.all(
      receivers.flatMap((receiver) => [post(sender, receiver.url), post(sender, receiver.url)]),
    );
    expect(receivers.every((receiver) => receiver.requests.length === 2)).toBe(true);
    await until("all connections to be closed", () => receivers.every((receiver) => receiver.open === 0));
    await until("all connections to be gone", () => sender.connections() === 0);
  });

  it("leave nothing for unreachable origins", async () => {
    const sender = senderWith({ keepAliveMs: 30, resolve: names({ "refused.test": ["10.0.0.1"] }) });
    const receiver = await openReceiver();
    await receiver.close();
    await Promise.all(
      Array.from({ length: 200 }, (_, index) => {
        const urls = [
          `https://a${index}.test/`,
          `http://refused.test:${1_000 + index}/`,
          `http://127.0.0.1:${receiver.port}/`,
        ];
        return post(sender, urls[index % 3] ?? "");
      }),
    );
    await until("all connections to be gone", () => sender.connections() === 0);
  });

  it("do not outlive their time, though requests follow each other, and none is cut short", async () => {
    const receiver = await openReceiver();
    const sender = senderWith({ keepAliveMs: 40, lifeMs: 60 });
    const { promise: isTime, resolve: answer } = Promise.withResolvers<void>();
    receiver.script({ after: isTime });
    const slow = post(sender, receiver.url);
    await receiver.received(1);
    await until("two more connections to be needed", async () => {
      expect(await post(sender, receiver.url)).toMatchObject({ statusCode: 200 });
      return receiver.accepted >= 4;
    });
    answer();
    expect(await slow).toMatchObject({ statusCode: 200 });
    await until("all connections to be gone", () => sender.connections() === 0 && receiver.open === 0);
  });

  it("are all ended by a close, also one that was made in the place of one that was too old", async () => {
    const receiver = await openReceiver();
    const sender = senderWith({ keepAliveMs: 30_000, lifeMs: 60 });
    expect(await post(sender, receiver.url)).toMatchObject({ statusCode: 200 });
    const usedMs = performance.now();
    await until("the connection to be too old", () => performance.now() - usedMs > 60);
    receiver.script("hang");
    const hanging = post(sender, receiver.url);
    await receiver.received(2);
    expect(receiver.accepted).toBe(2);
    expect(sender.connections()).toBe(1);
    sender.close();
    expect(await hanging).toMatchObject({ errorCode: "interrupted" });
  });

  it("are as many as requests at once", async () => {
    const receiver = await openReceiver();
    const sender = senderWith();
    const rows = Array.from({ length: 4 }, async () => {
      for (let time = 0; time < 10; time += 1) await post(sender, receiver.url);
    });
    await Promise.all(rows);
    expect(receiver.accepted).toBe(4);
    expect(receiver.requests).toHaveLength(40);
  });

  it("are closed where each request ends badly", async () => {
    const receiver = await openReceiver();
    receiver.answer = () => "reset";
    const sender = senderWith();
    const results = await Promise.all(Array.from({ length: 20 }, () => post(sender, receiver.url)));
    expect(results).toEqual(results.map(() => ({ errorCode: "connection_reset" })));
    expect(sender.connections()).toBe(0);
  });
});
