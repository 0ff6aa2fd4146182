import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type Harness, startHarness } from "./harness.ts";
import { type RawAnswer, RawConnection } from "./raw-connection.ts";
import { PAYLOAD_BYTES } from "../support/local-service.ts";
import { words } from "../support/words.ts";

/** The payload's limit and room for what is around it. */
const BODY_MAX_BYTES = PAYLOAD_BYTES + 64 * 1024;

let harness: Harness;
let strict: Harness;
let token: string;

beforeAll(async () => {
  harness = await startHarness({ http: { maxHeaderBytes: 4_096 } });
  // Of its own, as on a busy machine other tests may not be quick enough for these.
  strict = await startHarness({
    http: { headersTimeoutMs: 150, requestTimeoutMs: 300, checkEveryMs: 20 },
  });
  token = await harness.token("admin");
  await harness.owner.actions.create({ action: "a.b", application: "app", schemata: { type: "object" } });
});
afterAll(() => Promise.all([harness.close(), strict.close()]));

async function connection({ port } = harness): Promise<RawConnection> {
  const made = await RawConnection.open(port);
  onTestFinished(() => made.destroy());
  return made;
}

function head(requestLine: string, headers: Record<string, string> = {}): string {
  const all = { host: `127.0.0.1:${harness.port}`, authorization: `Bearer ${token}`, ...headers };
  return `${requestLine} HTTP/1.1\r\n${Object.entries(all)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join("")}\r\n`;
}

function publish(body: string, headers: Record<string, string> = {}): string {
  const length = String(Buffer.byteLength(body, "latin1"));
  return (
    head("POST /v1/events", { "content-type": "application/json", "content-length": length, ...headers }) +
    body
  );
}

/** Its body is to come in chunks. */
function chunkedHead(coding = "chunked"): string {
  return head("POST /v1/events", { "content-type": "application/json", "transfer-encoding": coding });
}

/** The one shape of every failure. */
function expectFailure(
  answer: RawAnswer,
  status: number,
): { error: string; details: Record<string, unknown> } {
  expect(answer.status, answer.body).toBe(status);
  expect(answer.headers["content-type"]).toBe("application/json");
  expect(answer.headers["x-content-type-options"]).toBe("nosniff");
  const body = JSON.parse(answer.body) as { error: string; details: Record<string, unknown>; code: number };
  expect(Object.keys(body)).toEqual(["error", "details", "code"]);
  expect(body.error).toMatch(/\S/);
  expect(typeof body.details).toBe("object");
  expect(body.code).toBe(status);
  return body;
}

/** What comes back to this on a connection of its own. */
async function answerTo(text: string, to = harness): Promise<RawAnswer> {
  const raw = await connection(to);
  raw.send(text);
  return raw.answer();
}

/** The connection on which this was refused. */
async function connectionRefused(text: string, status: number, by = harness): Promise<RawConnection> {
  const raw = await connection(by);
  raw.send(text);
  expectFailure(await raw.answer(), status);
  return raw;
}

const EVENT = '{"action":"a.b","payload":{"n":1}}';

describe("invalid requests", () => {
  test.each([
    ["not HTTP at all", "hello\r\n\r\n"],
    ["a header without a colon", "GET /health HTTP/1.1\r\nhost: x\r\nnonsense\r\n\r\n"],
    ["a header name with a space", "GET /health HTTP/1.1\r\nhost: x\r\nbad name: 1\r\n\r\n"],
    ["two lengths", "POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n"],
    [
      "a length and chunks",
      "POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n",
    ],
    ["a negative length", "POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: -1\r\n\r\n"],
    ["a NUL in a header", "GET /health HTTP/1.1\r\nhost: x\r\nx-a: b\0c\r\n\r\n"],
  ])("%s is 400, then the connection ends", async (_, text) => {
    await (await connectionRefused(text, 400)).closed();
  });

  test("headers beyond the limit are 431", async () => {
    await (await connectionRefused(head("GET /health", { "x-long": "a".repeat(5_000) }), 431)).closed();
  });

  test("a body with invalid chunks is 400", async () => {
    await (await connectionRefused(`${chunkedHead()}zz\r\n`, 400)).closed();
  });

  test("answers to earlier requests are still sent after invalid bytes", async () => {
    const raw = await connection();
    raw.send(`${publish(EVENT)}\u0000broken\r\n\r\n`);
    expect((await raw.answer()).status).toBe(201);
    await raw.closed();
  });

  test.each(["gzip, chunked", "identity, chunked"])("the transfer coding %s is 400", async (coding) => {
    await connectionRefused(`${chunkedHead(coding)}0\r\n\r\n`, 400);
  });

  test.each(["999.999.999.999", "localhost:99999", "a b", "exa[mple", "[::1", ""])(
    "a Host of %j does not harm the server",
    async (host) => {
      await connectionRefused(`GET /v1/../health?x=é HTTP/1.1\r\nhost: ${host}\r\n\r\n`, 400);
      expect((await answerTo(head("GET /health"))).status).toBe(200);
    },
  );

  test("HTTP/1.1 without Host or with two is 400, HTTP/1.0 needs none", async () => {
    await connectionRefused("GET /health HTTP/1.1\r\n\r\n", 400);
    await connectionRefused("GET /health HTTP/1.1\r\nHost: a\r\nHOST: b\r\n\r\n", 400);
    const old = await connection();
    old.send("GET /health HTTP/1.0\r\n\r\n");
    expect((await old.answer()).status).toBe(200);
    await old.closed();
  });

  const targets = words(
    "actions/% actions/%zz actions/%ff actions/%c3 %e0%80%80 events?action=% events?action=%ff",
  );
  test.each(targets)("the address /v1/%s is 400", async (target) => {
    await connectionRefused(head(`GET /v1/${target}`), 400);
  });

  test("an absolute target reaches its path", async () => {
    expect((await answerTo(head(`GET http://127.0.0.1:${harness.port}/health`))).status).toBe(200);
  });
});

test.each([
  ["a connection that never sends anything", () => ""],
  ["headers that do not end", () => "GET /health HTTP/1.1\r\nhost: 127.0.0.1\r\nx-a: b"],
  [
    "a body that does not end",
    (authorization: string) => publish(EVENT, { "content-length": "99", authorization }),
  ],
])("%s: 408, then the connection ends", async (_, text) => {
  const authorization = `Bearer ${await strict.token("publish")}`;
  await (await connectionRefused(text(authorization), 408, strict)).closed();
});

test("an event that was answered with 408 is not stored when its body completes", async () => {
  await strict.owner.actions.create({ action: "a.b", application: "app", schemata: { type: "object" } });
  const authorization = `Bearer ${await strict.token("publish")}`;
  const late = await RawConnection.open(strict.port, { halfOpen: true });
  onTestFinished(() => late.destroy());
  late.send(publish(EVENT, { authorization }).slice(0, -1));
  expectFailure(await late.answer(), 408);
  late.send("}");
  expect((await answerTo(publish(EVENT, { authorization }), strict)).status).toBe(201);
  expect((await strict.owner.events.list()).meta.total).toBe(1);
});

describe("bodies", () => {
  test("a declared length over the limit is refused before the body is sent", async () => {
    const raw = await connection();
    raw.send(head("POST /v1/events", { "content-type": "application/json", "content-length": "1000000" }));
    const answer = await raw.answer();
    expect(expectFailure(answer, 413).details).toEqual({ limit: BODY_MAX_BYTES, size: 1_000_000 });
    raw.send("x".repeat(1_000_000) + head("GET /health"));
    expect((await raw.answer()).status).toBe(200);
  });

  test("an undeclared length is refused while it is read, and the sender can read the answer", async () => {
    const raw = await connection();
    raw.send(chunkedHead());
    const chunk = `4000\r\n${"a".repeat(0x4000)}\r\n`;
    for (let sent = 0; sent < 10; sent += 1) raw.send(chunk);
    const answer = await raw.answer();
    const { details } = expectFailure(answer, 413);
    expect(details["limit"]).toBe(BODY_MAX_BYTES);
    expect(details["size"]).toBeGreaterThan(BODY_MAX_BYTES);
    raw.send(`${chunk}0\r\n\r\n${head("GET /health")}`);
    expect((await raw.answer()).status).toBe(200);
  });

  test("a refused body that does not end is cut, without a second answer", async () => {
    const raw = await connectionRefused(head("POST /v1/events", { "content-length": "1000" }), 401, strict);
    await raw.closed();
    expect(raw.pending).toBe("");
  });

  test("the long rests of sixteen refused bodies are read at once, and further connections end", async () => {
    const refuse = async (): Promise<{ raw: RawConnection; ends: boolean }> => {
      const raw = await connection();
      raw.send(head("POST /v1/events", { "content-length": "100000" }));
      const answer = await raw.answer();
      expectFailure(answer, 415);
      return { raw, ends: answer.headers["connection"] === "close" };
    };
    const first = await Promise.all(Array.from({ length: 16 }, refuse));
    expect(first.map(({ ends }) => ends)).not.toContain(true);
    const further = await refuse();
    expect(further.ends).toBe(true);
    await further.raw.closed();
    first[0]!.raw.send("x".repeat(100_000) + head("GET /health"));
    expect((await first[0]!.raw.answer()).status).toBe(200);
    expect((await refuse()).ends).toBe(false);
    for (const { raw } of first) raw.destroy();
  });

  test("a caller that sends Expect is told to continue, or is refused before it sends", async () => {
    const raw = await connection();
    raw.send(
      head("POST /v1/events", {
        "content-type": "application/json",
        "content-length": String(EVENT.length),
        expect: "100-continue",
      }),
    );
    expect((await raw.answer()).status).toBe(100);
    raw.send(EVENT);
    expect((await raw.answer()).status).toBe(201);

    const refused = await connection();
    refused.send(
      head("POST /v1/events", {
        "content-type": "application/json",
        "content-length": "100000000",
        expect: "100-continue",
      }),
    );
    expectFailure(await refused.answer(), 413);
    await refused.closed();
  });

  test("an unknown expectation is ignored", async () => {
    expect((await answerTo(publish(EVENT, { expect: "the-best" }))).status).toBe(201);
  });

  test("a body cut into single bytes and chunks is read whole", async () => {
    const chunks = Array.from(EVENT, (byte) => `1\r\n${byte}\r\n`);
    expect((await answerTo(`${chunkedHead()}${chunks.join("")}0\r\n\r\n`)).status).toBe(201);
  });

  test.each([
    ["invalid UTF-8", '{"action":"a.b","payload":{"n":"\u00ff"}}'],
    ["a byte order mark", '\u00ef\u00bb\u00bf{"action":"a.b","payload":{}}'],
    ["a NUL", '{"action":"a.b","payload":{"n":"\u0000"}}'],
    ["no JSON", "{"],
  ])("%s is 400", async (_, body) => {
    await connectionRefused(publish(body), 400);
  });

  test("a caller that leaves in the middle of its body is not answered, and disturbs nobody", async () => {
    const before = harness.log.length;
    const raw = await connection();
    raw.send(publish(EVENT, { "content-length": "1000", "x-request-id": "left-early" }));
    raw.destroy();
    expect((await answerTo(publish(EVENT))).status).toBe(201);
    expect(harness.log.slice(before).filter(({ level }) => level === "error")).toEqual([]);
  });
});

describe("several requests on one connection", () => {
  test("16 that are sent ahead are answered in order", async () => {
    const raw = await connection();
    const paths = Array.from({ length: 16 }, (_, n) => (n % 2 === 0 ? "GET /v1/nothing" : "GET /health"));
    raw.send(publish('{"action":"a.b","payload":{"n":"first"}}') + paths.map((path) => head(path)).join(""));
    const answer = await raw.answer();
    expect(answer.status).toBe(201);
    expect(answer.body).toContain('{"n":"first"}');
    for (const [n] of paths.entries()) expect((await raw.answer()).status).toBe(n % 2 === 0 ? 404 : 200);
    raw.send(head("GET /health"));
    expect((await raw.answer()).status).toBe(200);
  });

  test("an invalid request does not cost earlier ones their answers", async () => {
    const raw = await connection();
    raw.send(`${head("GET /health")}${head("GET /health")}nonsense\r\n\r\n`);
    expect((await raw.answer()).status).toBe(200);
    expect((await raw.answer()).status).toBe(200);
    await raw.closed();
  });

  test("HEAD sends the headers of GET and no body", async () => {
    const raw = await connection();
    raw.send(head("GET /v1/actions/a.b") + head("HEAD /v1/actions/a.b"));
    const get = await raw.answer();
    const headAnswer = await raw.answer({ toHead: true });
    expect(headAnswer.status).toBe(200);
    expect(headAnswer.headers["content-length"]).toBe(get.headers["content-length"]);
    expect(headAnswer.headers["content-type"]).toBe("application/json");
    raw.send(head("GET /health"));
    expect((await raw.answer()).status).toBe(200);
  });
});
