import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import { PublishCounts } from "../../src/metrics/counters.ts";
import { PAYLOAD_BYTES } from "../support/local-service.ts";
import { words } from "../support/words.ts";
import { document, expectConforming } from "./conforming.ts";
import { type Got, type Harness, startHarness } from "./harness.ts";

let harness: Harness;
let token: string;

beforeAll(async () => {
  harness = await startHarness();
  token = await harness.token("admin");
});
afterAll(() => harness.close());

function ask(line: string, body?: unknown, headers: Record<string, string> = {}): Promise<Got> {
  return harness.ask(line, { token, body, headers });
}

function expectFailure({ status, body }: Got, expected: number): void {
  expect(status, JSON.stringify(body)).toBe(expected);
  expect(Object.keys(body)).toEqual(["error", "details", "code"]);
  expect(body).toMatchObject({
    error: expect.stringMatching(/\S/),
    details: expect.any(Object),
    code: status,
  });
}

const SCHEMA = { type: "object", properties: { n: { type: "integer" } } };
const STRICT = { ...SCHEMA, required: ["n"] };
const ACTION = { action: "a.b", application: "app", schemata: { ...SCHEMA, propertees: {} } };
const EVENT = { action: "a.b", payload: { n: 1 } };
const BAD = { action: "a.b", payload: { n: "x" } };
const LARGE = { action: "a.b", payload: { n: 1, text: "x".repeat(PAYLOAD_BYTES) } };
const SUBSCRIPTION = {
  application: "x",
  subscription: "y",
  action: "a.b",
  handler: "https://hooks.example/",
};
const SINCE = { from: "2020-01-01T00:00:00Z", status: "all" };
const SCOPES = {
  field: "scopes[1]",
  message: expect.stringMatching(/^must be one of publish, .*publish:billing$/),
};

/** The request, its body, the status of the answer, and part of it: of a refusal, the field at fault. */
type Row = readonly [request: string, body: unknown, status: number, answer?: object | string];

// Each status, and what no client of ours sends. The contract holds all other answers over HTTP to the OpenAPI document.
// One after the other on one server, so rowids are those of the order.
const ROWS: readonly Row[] = [
  ["POST /v1/actions", ACTION, 201, { meta: { warnings: [{ pointer: "/propertees" }] } }],
  ["POST /v1/actions", ACTION, 409, "action"],
  ["POST /v1/actions", { ...ACTION, action: "a name" }, 422, "action"],
  ["GET /v1/actions?application=a%00", undefined, 400, "application"],
  ["GET /v1/actions/%61%2Eb", undefined, 200, { data: { action: "a.b" } }],
  ["GET /v1/actions/a%2Fb", undefined, 404],
  ["GET /v1/actions/a%00b", undefined, 400, "name"],
  ["PUT /v1/actions/a.b", { schemata: STRICT }, 409],
  ["GET /v1/actions/a.b/revisions/x", undefined, 400],
  ["GET /v1/actions/a.b/revisions/1?limit=1", undefined, 400, "limit"],

  ["POST /v1/events", EVENT, 201, { data: { rowid: 1, payload: { n: 1 } } }],
  ["POST /v1/events", { ...EVENT, action: "none" }, 404, "action"],
  ["POST /v1/events", { ...EVENT, action: "a.b\0" }, 422, "action"],
  ["POST /v1/events", { ...EVENT, extra: 1 }, 422, "extra"],
  ["POST /v1/events", "{", 400],
  ["POST /v1/events", '{"action":"a.b","payload":{"n":1,"n":2}}', 400],
  ["POST /v1/events", "", 400],
  ["POST /v1/events?dry=true", EVENT, 400, "dry"],
  ["POST /v1/events", LARGE, 413, { details: { limit: PAYLOAD_BYTES, size: PAYLOAD_BYTES + 17 } }],
  ["POST /v1/events/batch", { events: [BAD, EVENT, 5] }, 207, { data: [null, { rowid: 2 }, null] }],
  ["POST /v1/events/batch", { events: [BAD] }, 422, { errors: [{ code: 422 }], details: { rejected: 1 } }],
  ["POST /v1/events/batch", { events: [] }, 422, "events"],
  ["POST /v1/events/batch", [], 422],
  ["POST /v1/events/batch", "[{]", 400],
  ["GET /v1/events?limit=x", undefined, 400, "limit"],
  ["GET /v1/events?limit=1&limit=2", undefined, 400, "limit"],
  ["GET /v1/events?acton=a", undefined, 400, "acton"],
  ["GET /v1/events/01", undefined, 400],
  ["GET /v1/events/1e3", undefined, 400],
  ["GET /v1/events/9007199254740993", undefined, 400],
  ["GET /v1/events/%31%00", undefined, 400],

  ["POST /v1/subscriptions", SUBSCRIPTION, 201, { data: { rowid: 1 } }],
  ["GET /v1/subscriptions?active=yes", undefined, 400, "active"],
  ["POST /v1/subscriptions/1/replay", { ...SINCE, dry_run: true }, 200, { data: { total: 2 } }],
  ["POST /v1/subscriptions/1/replay", SINCE, 201, { data: { rowid: 1 } }],
  ["POST /v1/subscriptions/1/replay", { ...SINCE, dry_run: "yes" }, 422, "dry_run"],
  ["POST /v1/subscriptions/1/replay", null, 422],
  ["DELETE /v1/subscriptions/1", undefined, 200, { data: { rowid: 1 } }],
  ["DELETE /v1/subscriptions/1", undefined, 404],

  ["POST /v1/actions/a.b/validate", [], 422],
  ["PUT /v1/actions/a.b", { retired: true }, 200],
  ["POST /v1/events", EVENT, 410, { details: { field: "action", value: "a.b", successor: null } }],
  ["POST /v1/tokens", { name: "t", scopes: ["read", "all"] }, 422, { details: SCOPES }],
  ["GET /openapi.json", undefined, 200, document],
];

const TITLED = ROWS.map((row) => ({ row, title: `${row[0]} with ${JSON.stringify(row[1])?.slice(0, 60)}` }));

test.each(TITLED)("$title is answered as documented", async ({ row }) => {
  const [request, body, status, answer] = row;
  const [method = "", path = ""] = request.split(" ");
  const got = await ask(request, body);
  expect(got.status, JSON.stringify(got.body)).toBe(status);
  expectConforming(method, path, status, got.body);
  if (typeof answer === "string") expect(got.body["details"]).toMatchObject({ field: answer });
  else if (answer !== undefined) expect(got.body).toMatchObject(answer);
});

test("refusals of what is retired are counted as such", () => {
  const counts = new PublishCounts();
  counts.countRefusal(new EvregError("gone", "over"));
  const item = { index: 0, error: "over", details: {}, code: 410 };
  counts.countRefusedItems({ data: [null], errors: [item], meta: { accepted: 0, rejected: 1, replayed: 0 } });
  expect(counts.refused).toMatchObject({ gone: 2, internal: 0, withheld: 0 });
});

function publish(action: string, more: object = {}, headers: Record<string, string> = {}): Promise<Got> {
  return ask("POST /v1/events", { action, payload: {}, ...more }, headers);
}

describe("headers", () => {
  beforeAll(() => harness.owner.actions.create({ action: "h.any", application: "shop", schemata: SCHEMA }));

  test("an idempotency key: 201, then 200 with the first event, 409 for another body", async () => {
    const key = { "idempotency-key": "order-1" };
    const [first, again] = [await publish("h.any", {}, key), await publish("h.any", {}, key)];
    expect([first.status, first.headers["idempotency-replayed"]]).toEqual([201, undefined]);
    expect([again.status, again.headers["idempotency-replayed"]]).toEqual([200, "true"]);
    expect(again.body).toEqual(first.body);
    expectFailure(await publish("h.any", { payload: { n: 2 } }, key), 409);
    expectFailure(await publish("h.any", {}, { "idempotency-key": "" }), 422);
    expectFailure(await publish("h.any", { idempotency_key: "order-2" }, key), 422);
  });

  test("every answer has the security headers and a request id", async () => {
    for (const path of ["/v1/actions", "/v1/none", "/health"]) {
      const { headers } = await ask(`GET ${path}`);
      expect(headers).toMatchObject({
        "content-type": "application/json",
        "x-content-type-options": "nosniff",
        "cache-control": "no-store",
        "x-request-id": expect.stringMatching(/^[0-9a-f-]{36}$/),
      });
      expect(headers).not.toHaveProperty("access-control-allow-origin");
    }
  });
});

describe("health is 503 with the reason", () => {
  test("when nothing is delivered", async () => {
    const stopped = await startHarness({ engineState: () => "stopped" });
    const { status, headers, body } = await stopped.ask("GET /health");
    expect([status, headers["retry-after"]]).toEqual([503, expect.stringMatching(/^\d+$/)]);
    expectConforming("GET", "/health", 503, body);
    const data = { engine: "stopped", reason: expect.any(String) };
    expect(body).toMatchObject({ data, error: expect.any(String) });
    await stopped.close();
  });

  test("when the store is closed, and publishing is 503 with Retry-After", async () => {
    const closed = await startHarness();
    const mine = await closed.token("admin");
    await closed.owner.actions.create({ action: "a", application: "a", schemata: {} });
    await closed.local.store.close();
    const data = { status: "unavailable", reason: expect.stringContaining("closed") };
    expect(await closed.ask("GET /health")).toMatchObject({ status: 503, body: { data, code: 503 } });
    const published = await closed.ask("POST /v1/events", {
      token: mine,
      body: { action: "a", payload: {} },
    });
    expect(published.status).toBe(503);
    expect(published.headers["retry-after"]).toMatch(/^\d+$/);
    await closed.close();
  });
});

describe("requests without a route", () => {
  const nowhere = "/ /v1 /v1/ /v2/events /v1/actions/ /v1/actions/a/b /v1/events/1/ //v1/events /V1/events";
  test.each(words(nowhere))("%s is 404", async (path) => {
    expectFailure(await ask(`GET ${path}`), 404);
    expectFailure(await ask(`POST ${path}`, {}), 404);
  });

  test.each([
    ["PATCH /v1/events", "GET, HEAD, POST"],
    ["DELETE /v1/events/1", "GET, HEAD"],
    ["GET /v1/events/batch", "POST"],
    ["GET /v1/actions/a.b/check", "POST"],
    ["POST /health", "GET, HEAD"],
    ["PROPFIND /v1/actions/a.b", "GET, HEAD, PUT"],
  ])("%s is 405 and lists the allowed methods", async (line, allow) => {
    const got = await ask(line);
    expectFailure(got, 405);
    expect(got.headers.allow?.split(", ").toSorted()).toEqual(allow.split(", ").toSorted());
  });

  test("a browser that asks for another origin is allowed nothing", async () => {
    const got = await ask("OPTIONS /v1/events", undefined, {
      origin: "https://elsewhere.example",
      "access-control-request-method": "POST",
    });
    expectFailure(got, 405);
    expect(Object.keys(got.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
  });
});

describe("bodies", () => {
  test.each([
    ["text/plain", 415],
    ["application/x-www-form-urlencoded", 415],
    ["application/jsonp", 415],
    ["application/json; charset=UTF-8", 201],
    ["Application/JSON", 201],
    ["application/cloudevents+json", 201],
  ])("a body of type %s is %i", async (type, status) => {
    const got = await publish("h.any", {}, { "content-type": type });
    expect(got.status).toBe(status);
    if (status === 415) expectFailure(got, 415);
  });

  test("a compressed body is 415", async () => {
    expectFailure(await publish("h.any", {}, { "content-encoding": "gzip" }), 415);
    expect((await publish("h.any", {}, { "content-encoding": "identity" })).status).toBe(201);
  });

  test("a schema may contain as much white space as other bytes, and a body over 1 MiB is refused", async () => {
    const schemata = { description: "x".repeat(256 * 1024 - 18) };
    const text = JSON.stringify({ action: "a.large", application: "shop", schemata });
    expectFailure(await ask("POST /v1/actions", text + " ".repeat(768 * 1024)), 413);
    expect((await ask("POST /v1/actions", text + " ".repeat(512 * 1024))).status).toBe(201);
  });
});
