import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { PAYLOAD_BYTES } from "../support/local-service.ts";
import { startHarness, VERSION } from "./harness.ts";
import type { Harness } from "./harness.ts";

let harness: Harness;
let token: string;

const SCHEMA = {
  type: "object",
  properties: { email: { type: "string", format: "email" }, n: { type: "integer" } },
  required: ["email"],
};

beforeAll(async () => {
  harness = await startHarness();
  token = await harness.token("admin");
  await harness.owner.actions.create({ action: "user.created", application: "shop", schemata: SCHEMA });
});
afterAll(() => harness.close());

interface Got {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
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
  return {
    status: response.status,
    headers: response.headers,
    text,
    body: text === "" ? {} : JSON.parse(text),
  };
}

/** A batch under a preference: its status, what was applied of that, how many events came back and how many are stored. */
async function preferring(prefer: string, events: readonly unknown[]): Promise<unknown[]> {
  const { status, headers, body } = await ask("POST", "/v1/events/batch", { events }, { prefer });
  return [status, headers.get("preference-applied"), body["data"].length, body["meta"].accepted];
}

function expectFailure(got: Got, status: number): Record<string, any> {
  expect(got.status, got.text).toBe(status);
  expect(Object.keys(got.body)).toEqual(["error", "details", "code"]);
  expect(got.body).toMatchObject({
    error: expect.stringMatching(/\S/),
    details: expect.any(Object),
    code: status,
  });
  return got.body["details"];
}

const event = (payload: unknown = { email: "ada@example.com" }): unknown => ({
  action: "user.created",
  payload,
});

describe("actions", () => {
  test("creating is 201, a duplicate 409, invalid 422; reading is 200, a missing one 404", async () => {
    const created = await ask("POST", "/v1/actions", {
      action: "order.paid",
      application: "shop",
      schemata: SCHEMA,
    });
    expect(created.status, created.text).toBe(201);
    expect(created.body["data"]).toMatchObject({
      action: "order.paid",
      application: "shop",
      schemata: SCHEMA,
      revision: 1,
    });
    expectFailure(
      await ask("POST", "/v1/actions", { action: "order.paid", application: "shop", schemata: SCHEMA }),
      409,
    );
    const details = expectFailure(
      await ask("POST", "/v1/actions", { action: "no spaces", application: "x", schemata: {} }),
      422,
    );
    expect(details).toMatchObject({ field: "action", message: expect.any(String), value: "no spaces" });
    const got = await ask("GET", "/v1/actions/order.paid");
    expect(got.status).toBe(200);
    expect(got.body).toEqual({ data: created.body["data"] });
    expectFailure(await ask("GET", "/v1/actions/order.unpaid"), 404);
  });

  test("a name in the path is decoded", async () => {
    expect((await ask("GET", "/v1/actions/user%2Ecreated")).status).toBe(200);
    expect((await ask("GET", "/v1/actions/%75ser.created")).status).toBe(200);
    expectFailure(await ask("GET", "/v1/actions/user%2Fcreated"), 404);
  });

  test("warnings about a schema are in meta", async () => {
    const { status, body } = await ask("POST", "/v1/actions", {
      action: "with.slip",
      application: "shop",
      schemata: { type: "object", propertees: {} },
    });
    expect(status).toBe(201);
    expect(body["meta"].warnings).toHaveLength(1);
  });

  test("a compatible change is 200, a breaking one 409 unless asked for", async () => {
    await ask("POST", "/v1/actions", { action: "to.change", application: "shop", schemata: SCHEMA });
    const wider = { ...SCHEMA, properties: { ...SCHEMA.properties, note: { type: "string" } } };
    const changed = await ask("PUT", "/v1/actions/to.change", { schemata: wider });
    expect(changed.status, changed.text).toBe(200);
    expect(changed.body["data"].revision).toBe(2);
    const breaking = { ...wider, required: ["email", "note"] };
    expect(
      expectFailure(await ask("PUT", "/v1/actions/to.change", { schemata: breaking }), 409)["changes"],
    ).not.toEqual([]);
    expect(
      (await ask("PUT", "/v1/actions/to.change?compatibility=none", { schemata: breaking })).status,
    ).toBe(200);
    expectFailure(await ask("PUT", "/v1/actions/to.change?compatibility=full", { schemata: breaking }), 400);
    expectFailure(await ask("PUT", "/v1/actions/not.there", { schemata: SCHEMA }), 404);
  });

  test("a list is 200, and can be filtered by application", async () => {
    const { status, body } = await ask("GET", "/v1/actions?application=nobody");
    expect(status).toBe(200);
    expect(body).toEqual({ data: [] });
  });
});

describe("events", () => {
  test("publishing is 201, and the payload is returned byte for byte, then and later", async () => {
    const payload =
      '{ "n" : 1, "10": 1.0, "2":12345678901234567890, "email" : "ada@example.com", "é": "\\u00e9☃" }';
    const published = await ask("POST", "/v1/events", `{"payload":${payload},"action":"user.created"}`);
    expect(published.status, published.text).toBe(201);
    expect(published.text).toContain(`"payload":${payload},`);
    const { rowid } = published.body["data"];
    expect((await ask("GET", `/v1/events/${rowid}`)).text).toContain(`"payload":${payload},`);
    expect((await ask("GET", "/v1/events?limit=1")).text).toContain(`"payload":${payload},`);
  });

  test("publishing is 404 for an unknown action, 422 against the schema or with an unknown member, 400 if malformed", async () => {
    expect(
      expectFailure(await ask("POST", "/v1/events", { action: "not.there", payload: {} }), 404)["field"],
    ).toBe("action");
    expect(expectFailure(await ask("POST", "/v1/events", event({ email: 7 })), 422)).toMatchObject({
      field: "email",
      value: 7,
    });
    expectFailure(await ask("POST", "/v1/events", { action: "user.created", payload: {}, extra: 1 }), 422);
    expectFailure(await ask("POST", "/v1/events", "{"), 400);
    expectFailure(await ask("POST", "/v1/events", '{"action":"user.created","payload":{"a":1,"a":2}}'), 400);
    expectFailure(await ask("POST", "/v1/events", ""), 400);
    expectFailure(await ask("POST", "/v1/events?dry=true", event()), 400);
  });

  test("publishing a payload over the limit is 413 with limit and size", async () => {
    const details = expectFailure(
      await ask("POST", "/v1/events", event({ email: "a".repeat(PAYLOAD_BYTES) })),
      413,
    );
    expect(details["limit"]).toBe(PAYLOAD_BYTES);
    expect(details["size"]).toBeGreaterThan(PAYLOAD_BYTES);
  });

  test("an idempotency key: 201, then 200 with the first event, 409 for another body", async () => {
    const key = { "idempotency-key": "order-1" };
    const first = await ask("POST", "/v1/events", event(), key);
    expect(first.status).toBe(201);
    expect(first.headers.get("idempotency-replayed")).toBeNull();
    const again = await ask("POST", "/v1/events", event(), key);
    expect(again.status).toBe(200);
    expect(again.headers.get("idempotency-replayed")).toBe("true");
    expect(again.body).toEqual(first.body);
    expectFailure(await ask("POST", "/v1/events", event({ email: "eve@example.com" }), key), 409);
    expectFailure(await ask("POST", "/v1/events", event(), { "idempotency-key": "" }), 422);
    expectFailure(await ask("POST", "/v1/events", event(), { "idempotency-key": "a".repeat(256) }), 422);
    const both = {
      action: "user.created",
      payload: { email: "ada@example.com" },
      idempotency_key: "order-2",
    };
    expectFailure(await ask("POST", "/v1/events", both, key), 422);
  });

  test("a batch is 201 for all, 207 for some, 422 for none, in the order sent", async () => {
    const all = await ask("POST", "/v1/events/batch", { events: [event(), event()] });
    expect(all.status, all.text).toBe(201);
    expect(all.body["data"]).toHaveLength(2);
    expect(all.body["errors"]).toEqual([]);
    expect(all.body["meta"]).toEqual({ accepted: 2, rejected: 0, replayed: 0 });

    const some = await ask("POST", "/v1/events/batch", { events: [event({ email: 1 }), event(), 5] });
    expect(some.status, some.text).toBe(207);
    expect(some.body["data"].map((item: unknown) => item === null)).toEqual([true, false, true]);
    expect(some.body["errors"].map(({ index, code }: any) => [index, code])).toEqual([
      [0, 422],
      [2, 422],
    ]);
    expect(some.body["meta"]).toEqual({ accepted: 1, rejected: 2, replayed: 0 });

    const none = await ask("POST", "/v1/events/batch", {
      events: [event({}), { action: "not.there", payload: {} }],
    });
    expect(none.status).toBe(422);
    expect(none.body["data"]).toEqual([null, null]);
    expect(none.body["errors"].map(({ code }: any) => code)).toEqual([422, 404]);
    // A failure has a failure's shape as well.
    expect(none.body).toMatchObject({ error: expect.any(String), details: { rejected: 2 }, code: 422 });
  });

  test("a batch can be answered without its events, by RFC 7240", async () => {
    const [good, bad] = [event(), event({})];
    expect(await preferring("return=minimal", [good, good])).toEqual([201, "return=minimal", 0, 2]);
    expect(await preferring('wait=5, Return="minimal"; x=1', [good, bad])).toEqual([
      207,
      "return=minimal",
      0,
      1,
    ]);
    expect(await preferring("return=minimal", [bad])).toEqual([422, "return=minimal", 0, 0]);
    for (const other of ["return=representation", "respond-async", "x-return=minimal", "return=minimally"]) {
      expect(await preferring(other, [good, bad])).toEqual([207, null, 2, 1]);
    }
  });

  test("an atomic batch is all or nothing", async () => {
    const before = (await ask("GET", "/v1/events?limit=1")).body["meta"].total;
    const none = await ask("POST", "/v1/events/batch?atomic=true", { events: [event(), event({})] });
    expect(none.status, none.text).toBe(422);
    expect(none.body["data"]).toEqual([null, null]);
    expect((await ask("GET", "/v1/events?limit=1")).body["meta"].total).toBe(before);
  });

  test("an empty batch is 422, and a malformed one 400", async () => {
    expectFailure(await ask("POST", "/v1/events/batch", { events: [] }), 422);
    expectFailure(
      await ask("POST", "/v1/events/batch", { events: Array.from({ length: 1_001 }, () => event()) }),
      422,
    );
    expectFailure(await ask("POST", "/v1/events/batch", []), 422);
    expectFailure(await ask("POST", "/v1/events/batch", "[{]"), 400);
  });

  test("events have pages and an order, and an invalid query is 400", async () => {
    const { status, body } = await ask("GET", "/v1/events?limit=2&page=1&order=asc&action=user.created");
    expect(status).toBe(200);
    expect(body["data"]).toHaveLength(2);
    expect(body["meta"]).toEqual({ total: expect.any(Number), page: 1, per_page: 2 });
    for (const query of [
      "limit=0",
      "limit=501",
      "limit=x",
      "page=0",
      "from=yesterday",
      "order=up",
      "acton=a",
      "limit=1&limit=2",
      "page=2&after=1",
    ]) {
      expectFailure(await ask("GET", `/v1/events?${query}`), 400);
    }
  });

  test("reading an event is 404 for a missing one, 400 for an invalid id", async () => {
    expectFailure(await ask("GET", "/v1/events/999999"), 404);
    for (const id of ["0", "-1", "1.5", "abc", "01", "1e3", "9007199254740993", "%31%00"]) {
      expectFailure(await ask("GET", `/v1/events/${id}`), 400);
    }
  });
});

describe("subscriptions, deliveries", () => {
  const wanted = {
    application: "crm",
    subscription: "welcome",
    action: "user.created",
    handler: "https://hooks.example.com/x",
  };

  test("a subscription and a delivery go through all their states", async () => {
    const created = await ask("POST", "/v1/subscriptions", wanted);
    expect(created.status, created.text).toBe(201);
    const { secret, ...record } = created.body["data"];
    expect(secret).toMatch(/^whsec_/);
    expect(record).toMatchObject({ ...wanted, max_retries: 5, active: true });
    expectFailure(await ask("POST", "/v1/subscriptions", wanted), 409);
    expectFailure(
      await ask("POST", "/v1/subscriptions", { ...wanted, subscription: "b", action: "not.there" }),
      404,
    );
    expectFailure(
      await ask("POST", "/v1/subscriptions", { ...wanted, subscription: "c", max_retries: 21 }),
      422,
    );

    const path = `/v1/subscriptions/${record.rowid}`;
    expect((await ask("GET", path)).body).toEqual({ data: record });
    expect((await ask("GET", "/v1/subscriptions?application=crm&active=true")).body).toEqual({
      data: [record],
    });
    expectFailure(await ask("GET", "/v1/subscriptions?active=yes"), 400);

    const published = await ask("POST", "/v1/events", event());
    const id = published.body["data"].rowid;
    const where = await ask("GET", `/v1/events/${id}/deliveries`);
    expect(where.status).toBe(200);
    const [delivery] = where.body["data"];
    expect(delivery).toMatchObject({ event_id: id, subscription_id: record.rowid, status: "pending" });
    expect((await ask("GET", `/v1/deliveries?event=${id}`)).body).toEqual({ data: [delivery] });
    expect((await ask("GET", `/v1/deliveries/${delivery.rowid}`)).body["data"]).toEqual({
      ...delivery,
      attempts: [],
    });
    expectFailure(await ask("POST", `/v1/deliveries/${delivery.rowid}/retry`), 409);

    const paused = await ask("PUT", path, { active: false, max_retries: 2 });
    expect(paused.body["data"]).toEqual({ ...record, active: false, max_retries: 2 });
    expectFailure(await ask("PUT", path, { secret: "x" }), 422);
    const rotated = await ask("POST", `${path}/rotate-secret`, { overlap_ms: 60_000 });
    expect(rotated.status).toBe(200);
    expect(rotated.body["data"]).toMatchObject({ rowid: record.rowid, secret: expect.any(String) });
    expectFailure(await ask("POST", `${path}/rotate-secret`, {}), 409);
    expectFailure(await ask("POST", `${path}/rotate-secret`, { overlap: "1h" }), 422);
    for (const body of [null, [], 1]) expectFailure(await ask("POST", `${path}/replay`, body), 422);
    expect((await ask("DELETE", path)).body["data"]).toMatchObject({ rowid: record.rowid });
    expectFailure(await ask("DELETE", path), 404);
    expectFailure(await ask("PUT", path, { active: true }), 404);
  });

  test("missing ones are 404", async () => {
    for (const path of ["/v1/subscriptions/99999", "/v1/deliveries/99999", "/v1/events/99999/deliveries"]) {
      expectFailure(await ask("GET", path), 404);
    }
    expectFailure(await ask("POST", "/v1/deliveries/99999/retry"), 404);
    expectFailure(await ask("GET", "/v1/deliveries?status=lost"), 400);
  });
});

test("a token's routes report whose it is, and until when", async () => {
  const input = { name: "shop", scopes: ["publish:shop"], expires_at: "2999-01-01T00:00:00.000Z" };
  const made = (await ask("POST", "/v1/tokens", input)).body["data"];
  const answer = await ask("GET", "/v1/whoami", undefined, { authorization: `Bearer ${made.token}` });
  expect({ status: answer.status, body: answer.body }).toEqual({
    status: 200,
    body: {
      data: {
        ...input,
        data_id: expect.stringMatching(/^[0-9a-f]{32}$/),
        retries: { max_retries: 5, retry_schedule: null, disable_after_ms: 432_000_000 },
      },
    },
  });
  expectFailure(await ask("GET", "/v1/whoami?full=true"), 400);
});

test("tokens are shown once, listed without their value, and revoked", async () => {
  const created = await ask("POST", "/v1/tokens", { name: "shop", scopes: ["publish"] });
  expect(created.status, created.text).toBe(201);
  const { token: made, ...record } = created.body["data"];
  expect(made).toMatch(/^evreg_[0-9A-Za-z]{36}$/);
  const list = await ask("GET", "/v1/tokens");
  expect(list.text).not.toContain(made);
  expect(list.body["data"]).toContainEqual(record);
  expectFailure(await ask("GET", "/v1/actions", undefined, { authorization: `Bearer ${made}` }), 403);
  expect((await ask("DELETE", `/v1/tokens/${record.rowid}`)).body["data"]).toMatchObject({
    rowid: record.rowid,
  });
  expectFailure(await ask("DELETE", `/v1/tokens/${record.rowid}`), 404);
  expectFailure(await ask("GET", "/v1/actions", undefined, { authorization: `Bearer ${made}` }), 401);
  expectFailure(await ask("POST", "/v1/tokens", { name: "x", scopes: ["all"] }), 422);
});

describe("health", () => {
  test("is 200 while all is well, without a token", async () => {
    const response = await fetch(`${harness.url}/health`);
    expect(response.status).toBe(200);
    expect(await response.json()).toEqual({
      data: { status: "ok", version: VERSION, store: "ok", engine: "running", instance: "test" },
    });
  });

  test("is 503 with the reason when nothing is delivered", async () => {
    const stopped = await startHarness({ engineState: () => "stopped" });
    const response = await fetch(`${stopped.url}/health`);
    expect(response.status).toBe(503);
    expect(response.headers.get("retry-after")).toMatch(/^\d+$/);
    const body: unknown = await response.json();
    expect(body).toMatchObject({
      data: { engine: "stopped", reason: expect.any(String) },
      error: expect.any(String),
    });
    await stopped.close();
  });

  test("is 503 with the reason when the store is closed, and publishing is 503 with Retry-After", async () => {
    const closed = await startHarness();
    try {
      const mine = await closed.token("admin");
      await closed.owner.actions.create({ action: "a", application: "a", schemata: {} });
      await closed.local.store.close();
      const response = await fetch(`${closed.url}/health`);
      expect(response.status).toBe(503);
      const body = (await response.json()) as Record<string, unknown>;
      expect(body).toMatchObject({ data: { status: "unavailable", reason: expect.any(String) }, code: 503 });
      const publish = await fetch(`${closed.url}/v1/events`, {
        method: "POST",
        headers: { authorization: `Bearer ${mine}`, "content-type": "application/json" },
        body: '{"action":"a","payload":{}}',
      });
      expect(publish.status).toBe(503);
      expect(publish.headers.get("retry-after")).toMatch(/^\d+$/);
    } finally {
      await closed.close();
    }
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
    ["GET", "/v1/deliveries/1/retry", "POST, OPTIONS"],
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

  test.each([
    [undefined, 415],
    ["text/plain", 415],
    ["application/x-www-form-urlencoded", 415],
    ["application/json; charset=latin1", 415],
    ["application/jsonp", 415],
    ["application/json; charset=UTF-8", 201],
    ["Application/JSON", 201],
    ["application/cloudevents+json", 201],
  ])("a body of type %s is %i", async (type, status) => {
    const headers = new Headers({ authorization: `Bearer ${token}` });
    if (type !== undefined) headers.set("content-type", type);
    const body = Buffer.from(JSON.stringify(event()));
    const response = await fetch(`${harness.url}/v1/events`, { method: "POST", headers, body });
    expect(response.status).toBe(status);
    if (status === 415) expect(await response.json()).toMatchObject({ code: 415 });
  });

  test("a compressed body is 415", async () => {
    expectFailure(await ask("POST", "/v1/events", event(), { "content-encoding": "gzip" }), 415);
    expect((await ask("POST", "/v1/events", event(), { "content-encoding": "identity" })).status).toBe(201);
  });
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
