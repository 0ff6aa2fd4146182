import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { EvregError } from "../../src/domain/error.ts";
import { PublishCounts } from "../../src/metrics/counters.ts";
import { PAYLOAD_BYTES } from "../support/local-service.ts";
import { document, expectConforming } from "./conforming.ts";
import { startHarness, VERSION } from "./harness.ts";
import type { Harness } from "./harness.ts";

let harness: Harness;
let token: string;

beforeAll(async () => {
  harness = await startHarness();
  token = await harness.token("admin");
});
afterAll(() => harness.close());

interface Got {
  readonly status: number;
  readonly headers: Headers;
  readonly body: Record<string, any>;
}

async function ask(
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<Got> {
  const response = await fetch(harness.url + path, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const { status } = response;
  return { status, headers: response.headers, body: text === "" ? {} : JSON.parse(text) };
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
const SUBSCRIPTION = {
  application: "x",
  subscription: "y",
  action: "a.b",
  handler: "https://hooks.example.com/",
};
const SINCE = { from: "2020-01-01T00:00:00Z", status: "all" };

/** What is promised, the request, its body, the status of the answer, and part of it: of a refusal, the field at fault. */
type Row = readonly [
  promise: string,
  request: string,
  body: unknown,
  status: number,
  answer?: object | string,
];

// One after the other on one server, so rowids are those of the order. Each answer is held to the OpenAPI document as well.
const ROWS: readonly Row[] = [
  [
    "an action is made, with warnings",
    "POST /v1/actions",
    ACTION,
    201,
    { data: { revision: 1 }, meta: { warnings: [{ pointer: "/propertees" }] } },
  ],
  ["a name is taken once", "POST /v1/actions", ACTION, 409, "action"],
  ["an invalid name is refused", "POST /v1/actions", { ...ACTION, action: "a name" }, 422, "action"],
  ["actions are listed", "GET /v1/actions?application=nobody", undefined, 200, { data: [] }],
  ["a filter has no NUL", "GET /v1/actions?application=a%00", undefined, 400, "application"],
  ["an action is read", "GET /v1/actions/a.b", undefined, 200, { data: { action: "a.b" } }],
  ["a name in the path is decoded", "GET /v1/actions/%61%2Eb", undefined, 200, { data: { action: "a.b" } }],
  ["a slash in a name parts no path", "GET /v1/actions/a%2Fb", undefined, 404],
  ["a name has no NUL", "GET /v1/actions/a%00b", undefined, 400, "name"],
  ["a missing action is not found", "GET /v1/actions/none", undefined, 404],
  [
    "a compatible change is applied",
    "PUT /v1/actions/a.b",
    { schemata: SCHEMA },
    200,
    { data: { revision: 2 } },
  ],
  ["a breaking change is refused", "PUT /v1/actions/a.b", { schemata: STRICT }, 409],
  [
    "it is applied where compatibility does not count",
    "PUT /v1/actions/a.b?compatibility=none",
    { schemata: STRICT },
    200,
    { data: { revision: 3 } },
  ],
  [
    "there is no other such word",
    "PUT /v1/actions/a.b?compatibility=full",
    { schemata: STRICT },
    400,
    "compatibility",
  ],
  ["what is missing cannot change", "PUT /v1/actions/none", { schemata: SCHEMA }, 404],
  [
    "revisions are listed",
    "GET /v1/actions/a.b/revisions?limit=1",
    undefined,
    200,
    { data: [{ action: "a.b", revision: 3 }] },
  ],
  ["a revision is read", "GET /v1/actions/a.b/revisions/1", undefined, 200, { data: { revision: 1 } }],
  ["a missing revision is not found", "GET /v1/actions/a.b/revisions/9", undefined, 404],
  ["a revision has a number", "GET /v1/actions/a.b/revisions/x", undefined, 400],
  ["revisions have no pages", "GET /v1/actions/a.b/revisions?page=2", undefined, 400, "page"],
  ["a revision has no limit", "GET /v1/actions/a.b/revisions/1?limit=1", undefined, 400, "limit"],
  ["a missing action has no revisions", "GET /v1/actions/none/revisions", undefined, 404],

  ["an event is published", "POST /v1/events", EVENT, 201, { data: { rowid: 1, payload: { n: 1 } } }],
  ["an unknown action is not found", "POST /v1/events", { ...EVENT, action: "none" }, 404, "action"],
  ["a payload conforms to its schema", "POST /v1/events", BAD, 422, "n"],
  ["an unknown member is refused", "POST /v1/events", { ...EVENT, extra: 1 }, 422, "extra"],
  ["what is no JSON is malformed", "POST /v1/events", "{", 400],
  ["so is a key twice", "POST /v1/events", '{"action":"a.b","payload":{"n":1,"n":2}}', 400],
  ["and an empty body", "POST /v1/events", "", 400],
  ["an unknown parameter is refused", "POST /v1/events?dry=true", EVENT, 400, "dry"],
  [
    "a payload beyond the limit is too large",
    "POST /v1/events",
    { action: "a.b", payload: { n: 1, text: "x".repeat(PAYLOAD_BYTES) } },
    413,
    { details: { limit: PAYLOAD_BYTES, size: PAYLOAD_BYTES + '{"n":1,"text":""}'.length } },
  ],
  [
    "a batch is taken whole",
    "POST /v1/events/batch",
    { events: [EVENT, EVENT] },
    201,
    { data: [{ rowid: 2 }, { rowid: 3 }], errors: [], meta: { accepted: 2, rejected: 0, replayed: 0 } },
  ],
  [
    "or in part",
    "POST /v1/events/batch",
    { events: [BAD, EVENT, 5] },
    207,
    {
      data: [null, { rowid: 4 }, null],
      errors: [
        { index: 0, code: 422 },
        { index: 2, code: 422 },
      ],
      meta: { accepted: 1, rejected: 2, replayed: 0 },
    },
  ],
  [
    "where none is taken, the answer is a failure's as well",
    "POST /v1/events/batch",
    { events: [BAD, { ...EVENT, action: "none" }] },
    422,
    {
      data: [null, null],
      errors: [{ code: 422 }, { code: 404 }],
      error: expect.any(String),
      details: { rejected: 2 },
      code: 422,
    },
  ],
  [
    "all or nothing is nothing here",
    "POST /v1/events/batch?atomic=true",
    { events: [EVENT, BAD] },
    422,
    { data: [null, null], meta: { accepted: 0 } },
  ],
  ["a batch has events", "POST /v1/events/batch", { events: [] }, 422, "events"],
  ["a batch is an object", "POST /v1/events/batch", [], 422],
  ["a batch is JSON", "POST /v1/events/batch", "[{]", 400],
  [
    "a batch is for the data it names",
    "POST /v1/events/batch?data_id=other",
    { events: [EVENT] },
    409,
    "data_id",
  ],
  [
    "events have pages and an order",
    "GET /v1/events?limit=2&page=1&order=asc&action=a.b",
    undefined,
    200,
    { data: [{ rowid: 1 }, { rowid: 2 }], meta: { total: 4, page: 1, per_page: 2 } },
  ],
  ["a limit is a number", "GET /v1/events?limit=x", undefined, 400, "limit"],
  ["a limit has its bounds", "GET /v1/events?limit=0", undefined, 400, "limit"],
  ["a parameter is given once", "GET /v1/events?limit=1&limit=2", undefined, 400, "limit"],
  ["a misspelt parameter is refused", "GET /v1/events?acton=a", undefined, 400, "acton"],
  ["an action has no NUL", "GET /v1/events?action=a%00", undefined, 400, "action"],
  ["an event is read", "GET /v1/events/1", undefined, 200, { data: { rowid: 1 } }],
  ["a missing event is not found", "GET /v1/events/999999", undefined, 404],
  ["a rowid has no zero before it", "GET /v1/events/01", undefined, 400],
  ["a rowid has no exponent", "GET /v1/events/1e3", undefined, 400],
  ["a rowid has no more digits than are exact", "GET /v1/events/9007199254740993", undefined, 400],
  ["a rowid has no NUL", "GET /v1/events/%31%00", undefined, 400],

  [
    "a subscription is made, and its secret shown",
    "POST /v1/subscriptions",
    SUBSCRIPTION,
    201,
    { data: { rowid: 1, secret: expect.stringMatching(/^whsec_/) } },
  ],
  ["it is made once", "POST /v1/subscriptions", SUBSCRIPTION, 409],
  ["its action exists", "POST /v1/subscriptions", { ...SUBSCRIPTION, action: "none" }, 404, "action"],
  [
    "its settings are valid",
    "POST /v1/subscriptions",
    { ...SUBSCRIPTION, subscription: "z", max_retries: 21 },
    422,
    "max_retries",
  ],
  [
    "subscriptions are listed",
    "GET /v1/subscriptions?application=x&active=true",
    undefined,
    200,
    { data: [{ rowid: 1 }] },
  ],
  ["active is true or false", "GET /v1/subscriptions?active=yes", undefined, 400, "active"],
  ["an application has no NUL", "GET /v1/subscriptions?application=%00", undefined, 400, "application"],
  ["a subscription is read", "GET /v1/subscriptions/1", undefined, 200, { data: { rowid: 1 } }],
  ["a missing one is not found", "GET /v1/subscriptions/99", undefined, 404],

  ["a delivery goes with an event", "POST /v1/events", EVENT, 201, { data: { rowid: 5 } }],
  [
    "the deliveries of an event are listed",
    "GET /v1/events/5/deliveries",
    undefined,
    200,
    { data: [{ rowid: 1, event_id: 5, subscription_id: 1, status: "pending" }] },
  ],
  ["those of a missing event are not found", "GET /v1/events/99/deliveries", undefined, 404],
  ["deliveries are listed", "GET /v1/deliveries?event=5", undefined, 200, { data: [{ rowid: 1 }] }],
  ["a state is one that there is", "GET /v1/deliveries?status=lost", undefined, 400, "status"],
  ["a filter is without NUL", "GET /v1/deliveries?action=%00", undefined, 400, "action"],
  ["a delivery is read", "GET /v1/deliveries/1", undefined, 200, { data: { rowid: 1, attempts: [] } }],
  ["a missing delivery is not found", "GET /v1/deliveries/99", undefined, 404],
  ["what waits is not retried", "POST /v1/deliveries/1/retry", undefined, 409],
  ["nor what is missing", "POST /v1/deliveries/99/retry", undefined, 404],
  ["what blocks nothing is not skipped", "POST /v1/deliveries/1/skip", undefined, 409],

  [
    "a replay is counted",
    "POST /v1/subscriptions/1/replay",
    { ...SINCE, dry_run: true },
    200,
    { data: { total: 4 } },
  ],
  ["a replay starts", "POST /v1/subscriptions/1/replay", SINCE, 201, { data: { rowid: 1 } }],
  ["there is one at a time", "POST /v1/subscriptions/1/replay", SINCE, 409],
  [
    "a dry run is true or false",
    "POST /v1/subscriptions/1/replay",
    { ...SINCE, dry_run: "yes" },
    422,
    "dry_run",
  ],
  ["a replay is an object", "POST /v1/subscriptions/1/replay", null, 422],
  ["replays are listed", "GET /v1/replays", undefined, 200, { data: [{ rowid: 1 }] }],
  ["a replay is read", "GET /v1/replays/1", undefined, 200, { data: { rowid: 1 } }],
  ["a replay is cancelled", "POST /v1/replays/1/cancel", undefined, 200, { data: { status: "cancelled" } }],

  [
    "a subscription is changed",
    "PUT /v1/subscriptions/1",
    { active: false, max_retries: 2 },
    200,
    { data: { active: false, max_retries: 2 } },
  ],
  ["a secret is not changed so", "PUT /v1/subscriptions/1", { secret: "x" }, 422, "secret"],
  [
    "a secret is rotated",
    "POST /v1/subscriptions/1/rotate-secret",
    { overlap_ms: 60_000 },
    200,
    { data: { rowid: 1, secret: expect.stringMatching(/^whsec_/) } },
  ],
  ["not while the one before counts", "POST /v1/subscriptions/1/rotate-secret", {}, 409],
  ["an overlap has its name", "POST /v1/subscriptions/1/rotate-secret", { overlap: "1h" }, 422, "overlap"],
  ["a subscription is deleted", "DELETE /v1/subscriptions/1", undefined, 200, { data: { rowid: 1 } }],
  ["once", "DELETE /v1/subscriptions/1", undefined, 404],
  ["and not changed afterwards", "PUT /v1/subscriptions/1", { active: true }, 404],

  [
    "a schema is checked, and the answer is 200 whatever is found",
    "POST /v1/actions/a.b/check",
    { schemata: { type: "object", required: ["m"], requird: [] }, replay: 10 },
    200,
    { data: { compatible: false, warnings: [{ pointer: "/requird" }], replay: { checked: 5, failed: 5 } } },
  ],
  ["a check takes schemata", "POST /v1/actions/a.b/check", { schema: {} }, 422, "schemata"],
  [
    "a payload is checked as it is",
    "POST /v1/actions/a.b/validate",
    { n: 7 },
    200,
    { data: { valid: true } },
  ],
  [
    "and the answer is 200 as well",
    "POST /v1/actions/a.b/validate",
    { n: "7" },
    200,
    { data: { valid: false, errors: [{ field: "n", message: "must be an integer", value: "7" }] } },
  ],
  ["a payload is an object", "POST /v1/actions/a.b/validate", [], 422],
  ["a payload has its limit", "POST /v1/actions/a.b/validate", { n: "x".repeat(1024 * 1024) }, 413],
  ["an action may be deprecated", "PUT /v1/actions/a.b", { deprecated: true }, 200],
  [
    "a batch names deprecated actions",
    "POST /v1/events/batch",
    { events: [EVENT] },
    201,
    { meta: { deprecated: [{ action: "a.b" }] } },
  ],
  ["an action may be retired", "PUT /v1/actions/a.b", { retired: true }, 200],
  [
    "it takes no event any more",
    "POST /v1/events",
    EVENT,
    410,
    { details: { field: "action", value: "a.b", successor: null } },
  ],
  ["nor a payload to check", "POST /v1/actions/a.b/validate", { n: 7 }, 410],

  [
    "a token is made, and shown once",
    "POST /v1/tokens",
    { name: "t", scopes: ["read"] },
    201,
    { data: { rowid: 2, token: expect.stringMatching(/^evreg_[0-9A-Za-z]{36}$/) } },
  ],
  ["scopes are those there are", "POST /v1/tokens", { name: "t", scopes: ["all"] }, 422, "scopes[0]"],
  [
    "tokens are listed without their values",
    "GET /v1/tokens",
    undefined,
    200,
    { data: expect.not.arrayContaining([expect.objectContaining({ token: expect.anything() })]) },
  ],
  ["a token is revoked", "DELETE /v1/tokens/2", undefined, 200, { data: { rowid: 2 } }],
  ["only one that is there", "DELETE /v1/tokens/2", undefined, 404],
  ["a caller learns who it is", "GET /v1/whoami", undefined, 200, { data: { scopes: ["admin"] } }],
  ["without parameters", "GET /v1/whoami?full=true", undefined, 400, "full"],
  ["evreg diagnoses itself", "GET /v1/doctor", undefined, 200],
  [
    "health is as it is",
    "GET /health",
    undefined,
    200,
    { data: { status: "ok", version: VERSION, store: "ok", engine: "running", instance: "test" } },
  ],
  ["the document is served", "GET /openapi.json", undefined, 200, document],
];

test.each(ROWS.map((row) => ({ row, title: `${row[0]}: ${row[1]}` })))("$title", async ({ row }) => {
  const [, request, body, status, answer] = row;
  const [method = "", path = ""] = request.split(" ");
  const got = await ask(method, path, body);
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
  return ask("POST", "/v1/events", { action, payload: {}, ...more }, headers);
}

function batch(events: readonly object[], headers: Record<string, string> = {}): Promise<Got> {
  return ask("POST", "/v1/events/batch", { events }, headers);
}

/** A batch under a preference: its status, what was applied of that, how many events came back and how many are stored. */
async function preferring(prefer: string, ...events: readonly object[]): Promise<unknown[]> {
  const { status, headers, body } = await batch(events, { prefer });
  expectConforming("POST", "/v1/events/batch", status, body);
  return [status, headers.get("preference-applied"), body["data"].length, body["meta"].accepted];
}

describe("headers", () => {
  beforeAll(async () => {
    for (const action of ["h.any", "h.old", "h.older", "h.new"]) {
      await harness.owner.actions.create({ action, application: "shop", schemata: SCHEMA });
    }
  });

  test("an idempotency key: 201, then 200 with the first event, 409 for another body", async () => {
    const key = { "idempotency-key": "order-1" };
    const [first, again] = [await publish("h.any", {}, key), await publish("h.any", {}, key)];
    expect([first.status, first.headers.get("idempotency-replayed")]).toEqual([201, null]);
    expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([200, "true"]);
    expect(again.body).toEqual(first.body);
    expectFailure(await publish("h.any", { payload: { n: 2 } }, key), 409);
    expectFailure(await publish("h.any", {}, { "idempotency-key": "" }), 422);
    expectFailure(await publish("h.any", { idempotency_key: "order-2" }, key), 422);
  });

  test("a batch can be answered without its events, by RFC 7240", async () => {
    const [good, bad] = [
      { action: "h.any", payload: {} },
      { action: "h.any", payload: [] },
    ];
    expect(await preferring("return=minimal", good, good)).toEqual([201, "return=minimal", 0, 2]);
    const among = 'wait=5, Return="minimal"; x=1';
    expect(await preferring(among, good, bad)).toEqual([207, "return=minimal", 0, 1]);
    expect(await preferring("return=minimal", bad)).toEqual([422, "return=minimal", 0, 0]);
    for (const other of ["return=representation", "respond-async", "x-return=minimal", "return=minimally"]) {
      expect(await preferring(other, good, bad)).toEqual([207, null, 2, 1]);
    }
  });

  test("publishing to a deprecated action returns the headers of RFC 9745, which name the successor", async () => {
    expect((await publish("h.old")).headers.get("deprecation")).toBeNull();
    const since = Math.floor(harness.local.clock.now() / 1_000);
    await ask("PUT", "/v1/actions/h.old", { deprecated: true, successor: "h.new" });
    const event = { action: "h.old", payload: {} };
    for (const [{ headers }, path] of [
      [await publish("h.old"), "/v1/events"],
      [await batch([event, event]), "/v1/events/batch"],
    ] as const) {
      expect(headers.get("deprecation")).toBe(`@${since}`);
      expect(headers.get("link")).toMatch(/^<[^>]+>; rel="successor-version"$/);
      const [, link = ""] = /<(.*?)>/.exec(headers.get("link")!)!;
      const { pathname } = new URL(link, harness.url + path);
      expect((await ask("GET", pathname)).body["data"].action).toBe("h.new");
    }
  });

  test("a batch for several deprecated actions has the first date in its header, and lists them in its meta", async () => {
    await harness.local.clock.advance(60_000);
    const since = Math.floor(harness.local.clock.now() / 1_000);
    await ask("PUT", "/v1/actions/h.old", { deprecated: false });
    await ask("PUT", "/v1/actions/h.older", { deprecated: true });
    await harness.local.clock.advance(60_000);
    await ask("PUT", "/v1/actions/h.old", { deprecated: true, successor: "h.new" });
    const events = ["h.old", "h.new", "h.older", "none"].map((action) => ({ action, payload: {} }));
    const { headers, body } = await batch(events);
    expect(headers.get("deprecation")).toBe(`@${since}`);
    expect(headers.get("link")).toBeNull();
    expect(body["meta"].deprecated).toMatchObject([
      { action: "h.old", successor: "h.new" },
      { action: "h.older", successor: null },
    ]);
  });

  test("every answer has the security headers and a request id", async () => {
    for (const path of ["/v1/actions", "/v1/none", "/health"]) {
      const { headers } = await ask("GET", path);
      expect(headers.get("content-type")).toBe("application/json");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("cache-control")).toBe("no-store");
      expect(headers.get("x-request-id")).toMatch(/^[0-9a-f-]{36}$/);
      expect(headers.get("access-control-allow-origin")).toBeNull();
    }
  });
});

describe("health is 503 with the reason", () => {
  test("when nothing is delivered", async () => {
    const stopped = await startHarness({ engineState: () => "stopped" });
    const response = await fetch(`${stopped.url}/health`);
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toMatch(/^\d+$/);
    const body: unknown = await response.json();
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
    const response = await fetch(`${closed.url}/health`);
    expect(response.status).toBe(503);
    const data = { status: "unavailable", reason: expect.any(String) };
    expect(await response.json()).toMatchObject({ data, code: 503 });
    const published = await fetch(`${closed.url}/v1/events`, {
      method: "POST",
      headers: { authorization: `Bearer ${mine}`, "content-type": "application/json" },
      body: '{"action":"a","payload":{}}',
    });
    expect(published.status).toBe(503);
    expect(published.headers.get("retry-after")).toMatch(/^\d+$/);
    await closed.close();
  });
});

describe("requests without a route", () => {
  test.each([
    "/",
    "/v1",
    "/v1/",
    "/v2/events",
    "/v1/actions/",
    "/v1/actions/a/b",
    "/v1/events/1/",
    "//v1/events",
    "/V1/events",
  ])("%s is 404", async (path) => {
    expectFailure(await ask("GET", path), 404);
    expectFailure(await ask("POST", path, {}), 404);
  });

  test.each([
    ["PATCH", "/v1/events", "GET, HEAD, POST, OPTIONS"],
    ["DELETE", "/v1/events/1", "GET, HEAD, OPTIONS"],
    ["GET", "/v1/events/batch", "POST, OPTIONS"],
    ["GET", "/v1/actions/a.b/check", "POST, OPTIONS"],
    ["POST", "/health", "GET, HEAD, OPTIONS"],
    ["PROPFIND", "/v1/actions/a.b", "GET, HEAD, PUT, OPTIONS"],
  ])("%s %s is 405 and lists the allowed methods", async (method, path, allow) => {
    const got = await ask(method, path);
    expectFailure(got, 405);
    expect(got.headers.get("allow")?.split(", ").toSorted()).toEqual(allow.split(", ").toSorted());
  });

  test("OPTIONS lists the allowed methods and allows nothing to other origins", async () => {
    const got = await ask("OPTIONS", "/v1/events", undefined, {
      origin: "https://elsewhere.example",
      "access-control-request-method": "POST",
    });
    expect(got.status).toBe(204);
    expect(got.headers.get("allow")).toContain("POST");
    expect([...got.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
  });
});

describe("bodies", () => {
  test.each([
    [undefined, 415],
    ["text/plain", 415],
    ["application/x-www-form-urlencoded", 415],
    ["application/jsonp", 415],
    ["application/json; charset=UTF-8", 201],
    ["Application/JSON", 201],
    ["application/cloudevents+json", 201],
  ])("a body of type %s is %i", async (type, status) => {
    const headers = new Headers({ authorization: `Bearer ${token}` });
    if (type !== undefined) headers.set("content-type", type);
    const body = Buffer.from('{"action":"h.any","payload":{}}');
    const response = await fetch(`${harness.url}/v1/events`, { method: "POST", headers, body });
    expect(response.status).toBe(status);
    if (status === 415) expect(await response.json()).toMatchObject({ code: 415 });
  });

  test("a compressed body is 415", async () => {
    const event = { action: "h.any", payload: {} };
    expectFailure(await ask("POST", "/v1/events", event, { "content-encoding": "gzip" }), 415);
    expect((await ask("POST", "/v1/events", event, { "content-encoding": "identity" })).status).toBe(201);
  });

  test("a schema may contain as much white space as other bytes, and a body over 1 MiB is refused", async () => {
    const schemata = { description: "x".repeat(256 * 1024 - 18) };
    const text = JSON.stringify({ action: "a.large", application: "shop", schemata });
    expectFailure(await ask("POST", "/v1/actions", text + " ".repeat(768 * 1024)), 413);
    expect((await ask("POST", "/v1/actions", text + " ".repeat(512 * 1024))).status).toBe(201);
  });
});
