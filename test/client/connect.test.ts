import { once } from "node:events";
import type { RequestListener } from "node:http";
import { type AddressInfo, createServer as createTcpServer } from "node:net";
import { Worker } from "node:worker_threads";
import { afterEach, describe, expect, test } from "vitest";
import { startHarness } from "../http/harness.ts";
import { connect, type ConnectOptions } from "../../src/client/client.ts";
import { EvregError } from "../../src/domain/error.ts";
import type { Evreg } from "../../src/evreg.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { otherServer } from "../support/other-server.ts";
import { words } from "../support/words.ts";

const EVENT = { action: "a", payload: RawJson.fromText("{}") };

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

async function other(listener: RequestListener): Promise<string> {
  const { url, close } = await otherServer(listener);
  closing.push(close);
  return url;
}

function client(options: ConnectOptions): Evreg {
  const evreg = connect(options);
  closing.push(() => evreg.close());
  return evreg;
}

async function failure(call: Promise<unknown>): Promise<EvregError> {
  const error: unknown = await call.catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(EvregError);
  return error as EvregError;
}

/** The message of a call that no evreg answered. */
async function unreachable(call: Promise<unknown>): Promise<string> {
  const { code, message } = await failure(call);
  expect(code).toBe("unreachable");
  return message;
}

describe("the address", () => {
  test.each([
    "",
    ...words("nonsense 127.0.0.1:7480 ftp://127.0.0.1 http://user:pw@127.0.0.1 http://h/?a=1 http://h/#a"),
  ])("%j is refused", async (url) => {
    const { code, message } = await failure(Promise.resolve().then(() => connect({ url })));
    expect(code).toBe("usage");
    expect(message).not.toContain("pw");
  });

  test("a token is not sent unencrypted to another machine, unless allowed", () => {
    for (const url of ["http://evreg.example", "http://10.0.0.1:7480", "http://127.0.0.1.example"]) {
      expect(() => connect({ url, token: "evreg_x" })).toThrow(/https.*\(allowInsecureToken\)\.$/);
      expect(() => connect({ url, token: "evreg_x", allowInsecureToken: true })).not.toThrow();
      expect(() => connect({ url })).not.toThrow();
    }
    for (const url of ["http://localhost:1", "http://127.1.2.3", "http://[::1]:1", "https://evreg.example"]) {
      expect(() => connect({ url, token: "evreg_x" })).not.toThrow();
    }
  });

  test("a token that is invalid in a header is refused, and not shown", () => {
    expect(() => connect({ url: "http://127.0.0.1", token: "se cret" })).toThrow(/characters/);
    expect(() => connect({ url: "http://127.0.0.1", token: "secret\r\nx: y" })).not.toThrow(/secret/);
  });

  test("a path before /v1 is kept, and the token is in the header only", async () => {
    const seen: { url: string | undefined; authorization: string | undefined }[] = [];
    const url = await other((request, response) => {
      seen.push({ url: request.url, authorization: request.headers.authorization });
      response.setHeader("content-type", "application/json").end('{"data":[{"action":"a.b"}]}');
    });
    const evreg = client({ url: `${url}/evreg/`, token: "evreg_secret" });
    await evreg.actions.list({ application: "a&b=ü" });
    expect(seen).toEqual([
      { url: "/evreg/v1/actions?application=a%26b%3D%C3%BC", authorization: "Bearer evreg_secret" },
    ]);
  });
});

const half: RequestListener = (_, response) =>
  void response.writeHead(200, { "content-length": 100 }).write('{"data"');

describe("no server", () => {
  test("a closed port is unreachable, and the message says what to do", async () => {
    const server = createTcpServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const message = await unreachable(client({ url: `http://127.0.0.1:${port}` }).health());
    expect(message).toContain(`http://127.0.0.1:${port}`);
    expect(message).toContain("Is a server running there?");
    // A program that uses the client has no command line.
    expect(message).not.toMatch(/ --\w|`evreg /);
  });

  test("a server that does not answer in time, or stops in the middle of it, is unreachable", async () => {
    for (const listener of [() => {}, half])
      expect(
        await unreachable(client({ url: await other(listener), timeoutMs: 50 }).actions.list()),
      ).toContain("0.05 s");
  });

  test("a broken connection after a write says that it may have been done", async () => {
    const url = await other((request) => request.socket.destroy());
    const evreg = client({ url });
    expect(await unreachable(evreg.actions.list())).not.toContain("may have been done");
    expect(await unreachable(evreg.events.publish(EVENT))).toContain("may have been done");
  });

  test("after close every call fails", async () => {
    const evreg = client({ url: "http://127.0.0.1:1" });
    await evreg.close();
    await evreg.close();
    await unreachable(evreg.health());
  });
});

describe("an address that is nearly correct", () => {
  test("https to an http server is reported", async () => {
    const url = await other((_, response) => response.end());
    const message = await unreachable(client({ url: url.replace("http:", "https:") }).health());
    expect(message).toContain("does not speak https");
    expect(message).toContain(`Try ${url}`);
    expect(message).not.toContain("certificate");
  });

  test("a /v1 at its end is reported, as it is added anyway", async () => {
    const harness = await startHarness();
    closing.push(() => harness.close());
    const evreg = client({ url: `${harness.url}/v1`, token: await harness.token("admin") });
    for (const call of [evreg.actions.get("a"), evreg.events.publish(EVENT)]) {
      expect(await failure(call)).toMatchObject({
        code: "not_found",
        message: expect.stringMatching(
          /^There is nothing at \/v1\/v1\/(?:actions\/a|events); leave \/v1 off/,
        ) as unknown,
      });
    }
  });

  test("a proxy's own /v1 in front of evreg works", async () => {
    const url = await other((_, response) => {
      response.writeHead(404, { "content-type": "application/json" });
      response.end('{"error":"There is no action \\"a\\".","details":{},"code":404}');
    });
    expect(await failure(client({ url: `${url}/v1` }).actions.get("a"))).toMatchObject({ code: "not_found" });
  });
});

describe("another server", () => {
  test.each([
    ["a page", 200, "text/html", "<html>"],
    ["a proxy's failure", 502, "text/html", "<h1>Bad Gateway</h1>"],
    ["other JSON", 200, "application/json", '{"ok":true}'],
    ["no object", 200, "application/json", "[]"],
    ["nothing", 200, "application/json", ""],
    ["another failure", 404, "application/json", '{"message":"no"}'],
    [
      "a failure whose code is not its status",
      404,
      "application/json",
      '{"error":"x","details":{},"code":500}',
    ],
    ["an event without a payload", 200, "application/json", '{"data":{"rowid":1}}'],
    ["invalid UTF-8", 200, "application/json", Buffer.from([0x22, 0xff, 0x22])],
  ])("%s is not mistaken for evreg", async (_, status, type, body) => {
    const url = await other((__, response) => {
      response.writeHead(status, { "content-type": type }).end(body);
    });
    const message = await unreachable(client({ url }).events.get(1));
    expect(message).toContain(`HTTP ${status}`);
    expect(message).toContain(url);
  });

  test("a redirect is not followed, and its target is named", async () => {
    const url = await other((_, response) => {
      response.writeHead(301, { location: "https://evreg.example/v1/events/1" }).end();
    });
    const message = await unreachable(client({ url, token: "evreg_x" }).events.get(1));
    expect(message).toContain("https://evreg.example");
  });

  test("an answer that is too large is not read to its end", async () => {
    const url = await other((_, response) => {
      response.setHeader("content-type", "application/json").end(`{"data":["${"a".repeat(10_000)}"]}`);
    });
    expect(await unreachable(client({ url, maxAnswerBytes: 5_000 }).actions.list())).toContain("5000");
  });
});

test("a caller that was busy for longer than the server's keep-alive uses a new connection", async () => {
  // In a thread of its own, as this one is blocked meanwhile.
  const server = new Worker(
    `const server = require("node:net").createServer((socket) => {
      socket.on("data", (request) => {
        const answer = String(request).startsWith("GET") ? '{"data":[{}]}' : '{"data":{"rowid":1,"action":"a"}}';
        socket.write("HTTP/1.1 200 OK\\r\\nContent-Length: " + answer.length + "\\r\\n\\r\\n" + answer);
        setTimeout(() => socket.destroy(), 50);
      });
      socket.on("error", () => {});
    });
    server.listen(0, "127.0.0.1", () => require("node:worker_threads").parentPort.postMessage(server.address().port));`,
    { eval: true },
  );
  closing.push(() => server.terminate());
  const [port] = (await once(server, "message")) as [number];
  const evreg = client({ url: `http://127.0.0.1:${port}` });
  await Promise.all([evreg.actions.list(), evreg.subscriptions.list()]);
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
  const create = () => evreg.actions.create({ action: "a", application: "a", schemata: {} });
  await Promise.all([create(), create(), create()]);
});
