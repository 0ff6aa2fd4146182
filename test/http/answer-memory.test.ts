import { afterEach, describe, expect, test } from "vitest";
import { type ResponseLimits, ResponseBudget, type BudgetedRequest } from "../../src/http/response-budget.ts";
import type { Reply } from "../../src/http/response.ts";
import { RawJson } from "../../src/json/raw-json.ts";
import { PAYLOAD_BYTES } from "../support/local-service.ts";
import { ManualClock } from "../support/manual-clock.ts";
import { until } from "../support/until.ts";
import { type Harness, type HarnessOptions, startHarness } from "./harness.ts";
import { RawConnection } from "./raw-connection.ts";

const LIMITS: ResponseLimits = {
  readBytes: 100,
  searchBytes: 100,
  heldBytes: 100,
  smallBytes: 10,
  waitMs: 1_000,
};

function asking(token: unknown): BudgetedRequest {
  return {
    claim: (bytes) => ({ bytes, caller: { address: undefined, token }, evict: () => undefined }),
    untilDisconnect: (work) => work(new AbortController().signal),
  };
}

/** Answers an answer of so many bytes. */
function read(
  memory: ResponseBudget,
  bytes: number,
  { token = "a", reading = () => Promise.resolve(bytes) } = {},
): Promise<Reply> {
  return memory.answer(asking(token), 50, async () => ({ status: 200, body: "x".repeat(await reading()) }));
}

describe("memory for answers", () => {
  const clock = new ManualClock();

  test("large reads that do not fit together are made one after the other", async () => {
    const memory = new ResponseBudget(clock, LIMITS);
    const gates = [0, 1, 2].map(() => Promise.withResolvers<number>());
    const started: number[] = [];
    const reads = gates.map((gate, index) => {
      const reading = (): Promise<number> => {
        started.push(index);
        return gate.promise;
      };
      return read(memory, 1, { token: `token ${index}`, reading });
    });
    await clock.advance(0);
    expect(started).toEqual([0, 1]);
    gates[1]?.resolve(1);
    await reads[1];
    await clock.advance(0);
    expect(started).toEqual([0, 1, 2]);
    gates[0]?.resolve(1);
    gates[2]?.reject(new Error("the store failed"));
    await reads[0];
    await expect(reads[2]).rejects.toThrow("the store failed");
    // All was given back, also by the one that failed.
    await Promise.all([read(memory, 1), read(memory, 1)]);
  });

  test("small answers never wait", async () => {
    const memory = new ResponseBudget(clock, LIMITS);
    const large = await read(memory, 1_000);
    expect(large.release).toBeTypeOf("function");
    expect(await read(memory, 10)).toEqual({ status: 200, body: "x".repeat(10) });
  });

  test("a large answer waits and is then made anew, or is refused as unavailable", async () => {
    const memory = new ResponseBudget(clock, LIMITS);
    const first = await read(memory, 40);
    let size = 30;
    const second = read(memory, 30, { reading: () => Promise.resolve(size) });
    const third = read(memory, 45);
    const refused = expect(third).rejects.toMatchObject({ code: "unavailable" });
    await clock.advance(999);
    size = 35;
    first.release?.();
    const got = await second;
    expect(got.body).toHaveLength(35);
    await clock.advance(1);
    await refused;
    got.release?.();
    got.release?.();
    (await read(memory, 100)).release?.();
    expect(clock.pending).toBe(0);
  });

  test("one token's answers leave half of the memory to others", async () => {
    const memory = new ResponseBudget(clock, LIMITS);
    await read(memory, 50);
    const refused = expect(read(memory, 20)).rejects.toMatchObject({ code: "unavailable" });
    expect((await read(memory, 50, { token: "b" })).body).toHaveLength(50);
    await clock.advance(LIMITS.waitMs);
    await refused;
  });
});

describe("over HTTP", () => {
  let harness: Harness | undefined;
  const open: RawConnection[] = [];
  afterEach(async () => {
    for (const raw of open.splice(0)) raw.destroy();
    await harness?.close();
  });

  async function filled(options: HarnessOptions): Promise<(path: string) => string> {
    harness = await startHarness(options);
    await harness.owner.actions.create({ action: "a.b", application: "a", schemata: { type: "object" } });
    const payload = RawJson.fromText(JSON.stringify({ text: "é".repeat(PAYLOAD_BYTES / 2 - 100) }));
    const events = Array.from({ length: 40 }, () => ({ action: "a.b", payload }));
    await harness.owner.events.publishBatch(events);
    const token = await harness.token("read");
    return (path) => `GET ${path} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\n\r\n`;
  }

  async function connection(): Promise<RawConnection> {
    const raw = await RawConnection.open(harness?.port ?? 0);
    open.push(raw);
    return raw;
  }

  test("a large list arrives whole, in pieces or through HEAD", async () => {
    const get = await filled({});
    const raw = await connection();
    raw.send(get("/v1/events?limit=40") + get("/v1/events?limit=40").replace("GET", "HEAD") + get("/health"));
    const listed = await raw.answer();
    const { data, meta } = JSON.parse(listed.body) as { data: { payload: { text: string } }[]; meta: object };
    expect(data).toHaveLength(40);
    expect(new Set(data.map(({ payload }) => payload.text)).size).toBe(1);
    expect(meta).toEqual({ total: 40, page: 1, per_page: 40 });
    const head = await raw.answer({ toHead: true });
    expect(head.headers["content-length"]).toBe(String(Buffer.byteLength(listed.body)));
    expect((await raw.answer()).status).toBe(200);
  });

  test("an answer that is not read delays further large ones only, until its caller is gone", async () => {
    const { promise: never } = Promise.withResolvers<never>();
    const get = await filled({
      answers: { heldBytes: 1_000_000, smallBytes: 256 * 1024, waitMs: 0 },
      around: (service) => ({
        ...service,
        as(principal) {
          const evreg = service.as(principal);
          return { ...evreg, tokens: { ...evreg.tokens, list: () => never } };
        },
      }),
    });
    const large = get("/v1/events?limit=40");
    const token = (await harness?.token("admin")) ?? "";
    const stuck = await connection();
    // Its listing is ready, and waits behind an answer that never comes.
    stuck.send(get("/v1/tokens").replace(/Bearer \S+/, `Bearer ${token}`) + large);
    const other = await connection();
    const statusOf = async (request: string): Promise<number> => {
      other.send(request);
      const answer = await other.answer();
      if (answer.status === 503) expect(answer.headers["retry-after"]).toBe("2");
      return answer.status;
    };
    await expect.poll(() => statusOf(large)).toBe(503);
    expect(await statusOf(get("/v1/events?limit=2"))).toBe(200);
    stuck.destroy();
    await expect.poll(() => statusOf(large)).toBe(200);
  });

  test("a batch whose long refusals do not fit is answered with short ones", async () => {
    const { promise: never } = Promise.withResolvers<never>();
    harness = await startHarness({
      answers: { heldBytes: 6_000, smallBytes: 1_024 },
      around: (service) => ({
        ...service,
        as: (principal) => ({ ...service.as(principal), whoami: () => never }),
      }),
    });
    const schemata = { additionalProperties: { type: "string" } };
    await harness.owner.actions.create({ action: "a.b", application: "app", schemata });
    const token = await harness.token("publish");
    const bad = { action: "a.b", payload: { a: { b: "x".repeat(900) }, c: 1 } };
    const body = JSON.stringify({ events: [{ action: "a.b", payload: {} }, bad, bad] });
    const head = (line: string): string =>
      `${line} HTTP/1.1\r\nhost: a\r\nauthorization: Bearer ${token}\r\n`;
    const post =
      `${head("POST /v1/events/batch")}content-type: application/json\r\n` +
      `content-length: ${body.length}\r\n\r\n${body}`;
    const other = await connection();
    const told = async (): Promise<object[]> => {
      other.send(post);
      const { status, body: text } = await other.answer();
      expect(status, text).toBe(207);
      const { meta, errors } = JSON.parse(text) as { meta: object; errors: { details: object }[] };
      expect(meta).toEqual({ accepted: 1, rejected: 2, replayed: 0 });
      return errors.map(({ details }) => details);
    };
    const { value, ...first } = { field: "a", message: "must be a string", value: bad.payload.a };
    const errors = expect.arrayContaining([{ ...first, value }, expect.objectContaining({ field: "c" })]);
    const whole = { ...first, value, errors };
    const short = { ...first, value: `${JSON.stringify(value).slice(0, 253)}…` };
    expect(await told()).toEqual([whole, whole]);
    const stuck = await connection();
    // Its answer is ready, and waits behind one that never comes.
    stuck.send(`${head("GET /v1/whoami")}\r\n${post}`);
    const { owner } = harness;
    await until("its batch to be stored", async () => (await owner.events.list()).meta.total === 2);
    expect(await told()).toEqual([short, short]);
    stuck.destroy();
    await expect.poll(told).toEqual([whole, whole]);
  });
});
