import { afterEach, describe, expect, test } from "vitest";
import { type ResponseLimits, ResponseBudget, type BudgetedRequest } from "../../src/http/response-budget.ts";
import { isByteStream, type Part, type Reply, replyInParts } from "../../src/http/response.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { PAYLOAD_BYTES } from "../support/local-service.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { publishMany } from "../support/publish-many.ts";
import { type Harness, type HarnessOptions, startHarness } from "./harness.ts";
import { RawConnection } from "./raw-connection.ts";

const LIMITS: ResponseLimits = {
  answerBytes: 100,
  searchBytes: 100,
  smallBytes: 10,
  waitMs: 1_000,
};

function asking(token: unknown): BudgetedRequest {
  return {
    claim: (bytes) => ({ bytes, caller: token }),
    untilDisconnect: (work) => work(new AbortController().signal),
  };
}

/** Answers an answer of so many bytes. */
function read(memory: ResponseBudget, bytes: number, token = "a"): Promise<Reply> {
  return memory.answer(asking(token), 50, () => Promise.resolve({ status: 200, body: "x".repeat(bytes) }));
}

async function* endlessParts(): AsyncGenerator<Part, void, void> {
  for (;;) yield { body: "x".repeat(40), isLast: false };
}

/** A schema of 60 KB. */
function schemaOf(member: number): Readonly<Record<string, unknown>> {
  return { properties: { [member]: { description: "x".repeat(60_000) } } };
}

describe("memory for answers", () => {
  const clock = new ManualClock();

  test("a small answer counts only while it is made, and a large one as what it has come to", async () => {
    const memory = new ResponseBudget(clock, LIMITS);
    expect(await read(memory, 10)).toEqual({ status: 200, body: "x".repeat(10) });
    const large = await read(memory, 20);
    expect(large.release).toBeTypeOf("function");
    (await read(memory, 11, "b")).release?.();
    large.release?.();
    expect((await read(memory, 50)).body).toHaveLength(50);
  });

  test("an answer waits for those that are not taken, and is refused when that takes too long", async () => {
    const memory = new ResponseBudget(clock, LIMITS);
    const first = await read(memory, 40);
    const second = read(memory, 30);
    const third = read(memory, 45);
    const refused = expect(third).rejects.toMatchObject({ code: "unavailable" });
    await clock.advance(999);
    first.release?.();
    const got = await second;
    await clock.advance(1);
    await refused;
    got.release?.();
    got.release?.();
    (await read(memory, 50)).release?.();
    expect(clock.pending).toBe(0);
  });

  test("an answer in parts holds its room until it is out, as one part of it is in memory all the time", async () => {
    const memory = new ResponseBudget(clock, LIMITS);
    const endless = await memory.answer(asking("a"), 40, () => replyInParts(endlessParts()));
    if (!isByteStream(endless.body)) throw new Error("not in parts");
    const chunks = endless.body.chunks[Symbol.asyncIterator]();
    for (let part = 0; part < 3; part += 1) expect((await chunks.next()).value).toHaveLength(40);
    const second = read(memory, 50);
    const refused = expect(second).rejects.toMatchObject({ code: "unavailable" });
    expect((await read(memory, 50, "b")).body).toHaveLength(50);
    await clock.advance(LIMITS.waitMs);
    await refused;
    endless.release?.();
    expect((await read(memory, 50)).body).toHaveLength(50);
  });
});

describe("over HTTP", () => {
  let harness: Harness | undefined;
  afterEach(() => harness?.close());

  async function filled(options: HarnessOptions): Promise<(path: string) => string> {
    harness = await startHarness(options);
    await harness.owner.actions.create({ action: "a.b", application: "a", schemata: { type: "object" } });
    const payload = RawJson.fromText(JSON.stringify({ text: "é".repeat(PAYLOAD_BYTES / 2 - 100) }));
    await publishMany(harness.owner, 40, { action: "a.b", payload });
    const token = await harness.token("read");
    return (path) => `GET ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\n\r\n`;
  }

  /** Asks for more than a connection holds, and reads nothing. Answers once the first parts are out. */
  async function unread(token: string): Promise<RawConnection> {
    const { owner } = harness!;
    const payload = RawJson.fromText(JSON.stringify({ text: "x".repeat(PAYLOAD_BYTES - 100) }));
    await owner.actions.create({ action: "long", application: "a", schemata: {} });
    await publishMany(owner, 400, { action: "long", payload });
    const raw = await RawConnection.open(harness!.port);
    raw.stopReading();
    raw.send(`GET /v1/events?limit=400 HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\n\r\n`);
    return raw;
  }

  test("lists beyond a part of a megabyte come part by part, and are the same", async () => {
    const get = await filled({});
    const { owner, url } = harness!;
    const { data: listed } = await owner.events.list({ limit: 40 });
    const { action, payload } = listed[0]!;
    await publishMany(owner, 400, { action, payload });
    for (let member = 0; member < 12; member += 1) {
      await owner.actions.create({ action: `b.${member}`, application: "a", schemata: schemaOf(member) });
    }
    const token = /Bearer \S+/.exec(get("/"))![0];
    const answerOf = (path: string, method = "GET"): Promise<Response> =>
      fetch(url + path, { method, headers: { authorization: token } });
    for (const path of [
      "/v1/events?limit=400",
      "/v1/events?limit=300&order=asc",
      "/v1/events?limit=300&page=2",
    ]) {
      const answer = await answerOf(path);
      expect(answer.headers.has("content-length"), path).toBe(false);
      const query = Object.fromEntries(new URL(path, url).searchParams);
      const { order } = query as { order?: "asc" };
      const { data, meta } = await owner.events.list({
        limit: Number(query["limit"]),
        ...(order === undefined ? {} : { order }),
        ...(query["page"] === undefined ? {} : { page: Number(query["page"]) }),
      });
      const { data: answered, ...rest } = (await answer.json()) as { data: { rowid: number }[] };
      expect(rest).toEqual({ meta });
      expect(answered.map(({ rowid }) => rowid)).toEqual(data.map(({ rowid }) => rowid));
    }
    const head = await answerOf("/v1/events?limit=400", "HEAD");
    expect([head.status, head.headers.has("content-length"), await head.text()]).toEqual([200, false, ""]);
    const actions = await answerOf("/v1/actions");
    expect(actions.headers.has("content-length")).toBe(false);
    expect(await actions.json()).toEqual(JSON.parse(JSON.stringify(await owner.actions.list())));
  });

  test("who holds nothing is answered at once beside the long lists of two others", async () => {
    const gate = Promise.withResolvers<void>();
    const listing: string[] = [];
    const get = await filled({
      // Half of what lists have is eight of these megabytes.
      answers: { answerBytes: 16 * 1024 * 1024, waitMs: 0 },
      around({ parts }, { name, scopes }) {
        async function* events(...args: Parameters<typeof parts.events>): ReturnType<typeof parts.events> {
          if (scopes.includes("admin")) {
            listing.push(name);
            await gate.promise;
          }
          yield* parts.events(...args);
        }
        return { parts: { ...parts, events } };
      },
    });
    const { url } = harness!;
    const tokenOfAdmin = (): Promise<string> => harness!.token("admin");
    const listOf = async (bearer: string): Promise<number> => {
      const headers = { authorization: `Bearer ${bearer}` };
      const answer = await fetch(`${url}/v1/events?limit=500`, { headers });
      await answer.arrayBuffer();
      return answer.status;
    };
    const others = [listOf(await tokenOfAdmin()), listOf(await tokenOfAdmin())];
    await expect.poll(() => listing.length).toBe(2);
    const raw = await RawConnection.open(harness!.port);
    for (const path of ["/v1/events?limit=500", "/v1/actions", "/v1/subscriptions"]) {
      raw.send(get(path));
      expect((await raw.answer()).status, path).toBe(200);
    }
    gate.resolve();
    expect(await Promise.all(others)).toEqual([200, 200]);
  });

  test("an answer that is not read delays further ones of its caller only, until it is gone", async () => {
    const get = await filled({ answers: { answerBytes: 4_000_000, waitMs: 0 } });
    const list = get("/v1/events?limit=40&action=a.b");
    const stuck = await unread(/Bearer (\S+)/.exec(list)![1]!);
    const other = await RawConnection.open(harness!.port);
    const statusOf = async (request: string): Promise<number> => {
      other.send(request);
      const answer = await other.answer();
      if (answer.status === 503) expect(answer.headers["retry-after"]).toBe("2");
      return answer.status;
    };
    const ofAnother = list.replace(/Bearer \S+/, `Bearer ${await harness!.token("read")}`);
    await expect.poll(async () => [await statusOf(list), await statusOf(ofAnother)]).toEqual([503, 200]);
    stuck.destroy();
    await expect.poll(() => statusOf(list)).toBe(200);
  });

  test("a caller that takes nothing for a minute is cut off, also where each answer is small", async () => {
    const cutClock = new ManualClock();
    const get = await filled({ clock: cutClock });
    const large = await unread(/Bearer (\S+)/.exec(get("/"))![1]!);
    const { log, port } = harness!;
    const askUntilCut = async (request: string): Promise<void> => {
      const small = await RawConnection.open(port);
      small.stopReading();
      let isCut = false;
      void small.closed().then(() => (isCut = true));
      const ask = async (): Promise<boolean> => {
        const answered = log.length + 10;
        small.send(request.repeat(10));
        const all = expect.poll(() => log.length >= answered || isCut, { timeout: 500, interval: 1 });
        // Those of a connection that takes no more wait.
        await all.toBe(true).catch(() => cutClock.advance(60_000));
        return isCut;
      };
      // The answers to some hundreds, or some thousands, are more than the system holds for a connection.
      while (!(await ask()));
    };
    await askUntilCut(get("/openapi.json"));
    // Those to HEAD are nothing but headers.
    await askUntilCut(get("/ui/").replace("GET", "HEAD"));
    large.startReading();
    await large.closed();
    expect(large.pending.endsWith("0\r\n\r\n")).toBe(false);
  });
});
