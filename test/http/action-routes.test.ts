import { afterAll, beforeAll, expect, test } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import { PublishCounts } from "../../src/metrics/counters.ts";
import { type Harness, startHarness } from "./harness.ts";

const SCHEMA = { type: "object", properties: { id: { type: "integer" } } };
const STRICT = { ...SCHEMA, required: ["id"] };

let harness: Harness;
let token: string;

beforeAll(async () => {
  harness = await startHarness();
  token = await harness.token("admin");
  for (const action of ["a.b", "a.old", "a.older", "a.new"]) {
    await harness.owner.actions.create({ action, application: "shop", schemata: SCHEMA });
  }
});
afterAll(() => harness.close());

async function ask(method: string, path: string, body?: unknown) {
  const response = await fetch(harness.url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const { status, headers } = response;
  return { status, headers, body: (await response.json()) as Record<string, any> };
}

test("revisions are 200, a missing one is 404, and an invalid number is 400", async () => {
  await ask("PUT", "/v1/actions/a.b?compatibility=none", { schemata: STRICT });
  const { status, body } = await ask("GET", "/v1/actions/a.b/revisions?limit=1");
  expect(status).toBe(200);
  expect(body["data"]).toMatchObject([{ action: "a.b", revision: 2, schemata: STRICT }]);
  const one = await ask("GET", "/v1/actions/a.b/revisions/1");
  expect(one).toMatchObject({ status: 200, body: { data: { revision: 1, schemata: SCHEMA } } });
  for (const [path, expected] of [
    ["a.b/revisions/3", 404],
    ["a.b/revisions/0", 400],
    ["a.b/revisions/x", 400],
    ["a.b/revisions?page=2", 400],
    ["a.b/revisions/1?limit=1", 400],
    ["none/revisions", 404],
  ] as const) {
    expect((await ask("GET", `/v1/actions/${path}`)).status, path).toBe(expected);
  }
});

test("a check is 200 whatever it finds, and reading it is 405", async () => {
  const got = await ask("POST", "/v1/actions/a.new/check", { schemata: STRICT, replay: 1 });
  expect(got.status).toBe(200);
  expect(got.body["data"]).toMatchObject({
    compatible: false,
    warnings: [],
    replay: { checked: 0, failed: 0, failures: [] },
  });
  expect(got.body["data"].breaks.length).toBeGreaterThan(0);
  expect((await ask("GET", "/v1/actions/a.new/check")).status).toBe(405);
  expect((await ask("POST", "/v1/actions/a.new/check", { schema: {} })).status).toBe(422);
});

test("publishing to a deprecated action returns the headers of RFC 9745, which name the successor", async () => {
  const event = { action: "a.old", payload: {} };
  expect((await ask("POST", "/v1/events", event)).headers.get("deprecation")).toBeNull();
  const since = Math.floor(harness.local.clock.now() / 1_000);
  await ask("PUT", "/v1/actions/a.old", { deprecated: true, successor: "a.new" });
  const single = await ask("POST", "/v1/events", event);
  expect(single.status).toBe(201);
  expect(single.headers.get("deprecation")).toBe(`@${since}`);
  expect(single.headers.get("link")).toBe('<actions/a.new>; rel="successor-version"');
  const batch = await ask("POST", "/v1/events/batch", { events: [event, event] });
  expect(batch.headers.get("deprecation")).toBe(`@${since}`);
  for (const [{ headers }, path] of [
    [single, "/v1/events"],
    [batch, "/v1/events/batch"],
  ] as const) {
    const link = /<(.*?)>/.exec(headers.get("link") ?? "")?.[1] ?? "";
    const { pathname } = new URL(link, harness.url + path);
    expect((await ask("GET", pathname)).body["data"].action).toBe("a.new");
  }
});

test("a batch for several deprecated actions has the first date in its header, and lists them in its meta", async () => {
  await harness.local.clock.advance(60_000);
  const since = Math.floor(harness.local.clock.now() / 1_000);
  await ask("PUT", "/v1/actions/a.old", { deprecated: false });
  await ask("PUT", "/v1/actions/a.older", { deprecated: true });
  await harness.local.clock.advance(60_000);
  await ask("PUT", "/v1/actions/a.old", { deprecated: true, successor: "a.new" });
  const events = ["a.old", "a.new", "a.older", "none"].map((action) => ({ action, payload: {} }));
  const { status, headers, body } = await ask("POST", "/v1/events/batch", { events });
  expect(status).toBe(207);
  expect(headers.get("deprecation")).toBe(`@${since}`);
  expect(headers.get("link")).toBeNull();
  expect(body["meta"].deprecated).toMatchObject([
    { action: "a.old", successor: "a.new" },
    { action: "a.older", successor: null },
  ]);
});

test("publishing to a retired action is 410, counted as gone", async () => {
  await ask("PUT", "/v1/actions/a.old", { retired: true, successor: "a.new" });
  const { status, body } = await ask("POST", "/v1/events", { action: "a.old", payload: {} });
  expect(status).toBe(410);
  expect(body).toMatchObject({
    error: expect.stringContaining("a.new"),
    details: { field: "action", value: "a.old", successor: "a.new" },
    code: 410,
  });
  const counts = new PublishCounts();
  counts.countRefusal(new EvregError("gone", "over"));
  const item = { index: 0, error: "over", details: {}, code: 410 };
  counts.countRefusedItems({ data: [null], errors: [item], meta: { accepted: 0, rejected: 1, replayed: 0 } });
  expect(counts.refused).toMatchObject({ gone: 2, internal: 0, withheld: 0 });
});

test("a schema may contain as much white space as other bytes, and a body over 1 MiB is refused", async () => {
  const schemata = { description: "x".repeat(256 * 1024 - 18) };
  const send = (spaces: number) =>
    fetch(`${harness.url}/v1/actions`, {
      method: "POST",
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      body: JSON.stringify({ action: "a.large", application: "shop", schemata }) + " ".repeat(spaces),
    });
  expect((await send(768 * 1024)).status).toBe(413);
  expect((await send(512 * 1024)).status).toBe(201);
});

const validate = (body: unknown, action = "a.new") => ask("POST", `/v1/actions/${action}/validate`, body);

test("a payload is checked as it is in the body, and the answer is 200 whatever it finds", async () => {
  expect(await validate({ id: 7 })).toMatchObject({ status: 200, body: { data: { valid: true } } });
  expect(await validate({ id: "7" })).toMatchObject({
    status: 200,
    body: { data: { valid: false, errors: [{ field: "id", message: "must be an integer", value: "7" }] } },
  });
  expect((await validate([])).status).toBe(422);
  expect((await validate({ id: "x".repeat(1024 * 1024) })).status).toBe(413);
  // It is retired.
  expect((await validate({ id: 7 }, "a.old")).status).toBe(410);
});
