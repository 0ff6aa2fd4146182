import addFormats from "ajv-formats";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { deliveryBody, deliveryHeaders } from "../../src/delivery/request.ts";
import { SERVICE_EVENT_NAMES } from "../../src/domain/service-events.ts";
import { OPENAPI_ROUTE, openApiDocument, openApiPath, ROUTES } from "../../src/http/openapi.ts";
import type { Route } from "../../src/http/routes/route.ts";
import { type Harness, startHarness, VERSION } from "./harness.ts";

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly security: readonly object[];
  readonly parameters?: readonly { name: string; in: string; required?: boolean; schema: object }[];
  readonly requestBody?: { content: Record<string, { schema: object }> };
  readonly responses: Record<string, { $ref?: string; content?: Record<string, { schema: object }> }>;
}

interface Document {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, Operation>>;
  readonly webhooks: Record<string, { post: Operation }>;
  readonly components: { schemas: Record<string, object>; responses: Record<string, object> };
}

const document = openApiDocument(VERSION, { token: true, publish: true }) as unknown as Document;
const routes: readonly Route[] = [...ROUTES, OPENAPI_ROUTE];

function operations(): { path: string; method: string; operation: Operation }[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
}

interface Sent {
  readonly type?: string | readonly string[];
  readonly maximum?: number;
  readonly maxLength?: number;
  readonly enum?: readonly unknown[];
  readonly format?: string;
  readonly pattern?: string;
}

/** What is sent as a body. */
const REQUESTS: ReadonlySet<string> = new Set(
  routes.flatMap(({ body }) => (body === undefined ? [] : [String(body["title"])])),
);

/** Every `$ref` anywhere in a value. */
function references(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, member]) =>
    name === "$ref" && typeof member === "string" ? [member] : references(member),
  );
}

function resolve(reference: string): unknown {
  let value: unknown = document;
  for (const name of reference.slice(2).split("/"))
    value = (value as Record<string, unknown> | undefined)?.[name];
  return value;
}

describe("the document", () => {
  test("has each route, and no other", () => {
    const documented = operations().map(({ path, method }) => `${method.toUpperCase()} ${path}`);
    const registered = routes.map(({ method, path }) => `${method} ${openApiPath(path)}`);
    expect(documented.toSorted()).toEqual(registered.toSorted());
    expect(new Set(registered).size).toBe(registered.length);
  });

  test("has every route of the specification", () => {
    const documented = new Set(operations().map(({ path, method }) => `${method.toUpperCase()} ${path}`));
    const specified = [
      "GET /v1/actions",
      "POST /v1/actions",
      "GET /v1/actions/{name}",
      "PUT /v1/actions/{name}",
      "GET /v1/events",
      "POST /v1/events",
      "GET /v1/events/{id}",
      "POST /v1/events/batch",
      "GET /v1/subscriptions",
      "POST /v1/subscriptions",
      "PUT /v1/subscriptions/{id}",
      "DELETE /v1/subscriptions/{id}",
      "GET /health",
      "GET /metrics",
    ];
    for (const route of specified) expect(documented, route).toContain(route);
  });

  test("all its references resolve", () => {
    const all = references(document);
    expect(all.length).toBeGreaterThan(50);
    for (const reference of all) expect(resolve(reference), reference).toBeDefined();
  });

  test("each operation has a unique id, a summary, and the security of its route", () => {
    const names = operations().map(({ operation }) => operation.operationId);
    expect(new Set(names).size).toBe(names.length);
    for (const { path, operation } of operations()) {
      expect(operation.summary).toMatch(/^[A-Z].*[^.]$/);
      const isOpen = path === "/v1/tokens/exchange" || !(path.startsWith("/v1/") || path === "/metrics");
      expect(operation.security.length === 0, path).toBe(isOpen);
    }
  });

  test("every answer is JSON but the metrics, the backup and the stream", () => {
    const others: Record<string, string> = {
      "/metrics": "text/plain",
      "/v1/backup": "application/vnd.sqlite3",
      "/v1/stream": "text/event-stream",
    };
    for (const { path, operation } of operations()) {
      for (const [status, { content }] of Object.entries(operation.responses)) {
        const mediaType = (status === "200" ? others[path] : undefined) ?? "application/json";
        if (content !== undefined) expect(Object.keys(content), `${path} ${status}`).toEqual([mediaType]);
      }
    }
  });

  test("each path parameter is declared, as a required one", () => {
    for (const { path, operation } of operations()) {
      const inPath = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
      const declared = (operation.parameters ?? []).filter((parameter) => parameter.in === "path");
      expect(declared.map(({ name }) => name)).toEqual(inPath);
      for (const { required } of declared) expect(required).toBe(true);
    }
  });

  test("numbers and texts in requests have a maximum, and no text contains a NUL", () => {
    const bodies = Object.entries(document.components.schemas).filter(([name]) => REQUESTS.has(name));
    expect(bodies).toHaveLength(REQUESTS.size);
    const sent = [
      ...operations().flatMap(({ path, operation }) =>
        (operation.parameters ?? [])
          // What is in a header ends with the head.
          .filter((parameter) => parameter.in !== "header")
          .map(({ name, schema }) => [`${path} ${name}`, schema] as const),
      ),
      ...bodies.flatMap(([name, body]) =>
        Object.entries((body as { properties: Record<string, object> }).properties).map(
          ([member, schema]) => [`${name} ${member}`, schema] as const,
        ),
      ),
    ];
    for (const [place, schema] of sent) {
      const { type, maximum, maxLength, enum: allowed, format, pattern } = schema as Sent;
      const types = new Set([type].flat());
      if (types.has("integer") || types.has("number")) expect(maximum, place).toBeTypeOf("number");
      if (!types.has("string") || allowed !== undefined || format === "date-time") continue;
      expect(maxLength, place).toBeTypeOf("number");
      const isNamed = format === "uri" || pattern !== undefined;
      expect(isNamed, place).toBe(true);
      if (pattern !== undefined) expect(new RegExp(pattern, "u").test("a\0"), place).toBe(false);
    }
  });

  test("says whether this server needs a token", () => {
    const open = openApiDocument(VERSION, { token: false, publish: false }) as unknown as Document;
    const anonymous = openApiDocument(VERSION, { token: true, publish: false }) as unknown as Document;
    const token = [{ token: [] }];
    expect(document.paths["/v1/events"]?.["post"]?.security).toEqual(token);
    expect(open.paths["/v1/tokens"]?.["get"]?.security).toEqual([...token, {}]);
    expect(anonymous.paths["/v1/events"]?.["post"]?.security).toEqual([...token, {}]);
    expect(anonymous.paths["/v1/tokens"]?.["get"]?.security).toEqual(token);
  });

  test("has valid schemas, and all errors have one shape", () => {
    const ajv = new Ajv2020({ strict: false });
    addFormats.default(ajv);
    for (const schema of Object.values(document.components.schemas))
      expect(ajv.validateSchema(schema)).toBe(true);
    for (const { path, operation } of operations()) {
      for (const [status, response] of Object.entries(operation.responses)) {
        if (Number(status) < 400 || path === "/health" || status === "422") continue;
        expect(response.$ref, `${path} ${status}`).toMatch(/^#\/components\/responses\//);
      }
    }
  });
});

describe("what handlers receive", () => {
  const event = { eventId: 1, action: "a.b", attempt: 2 };
  const payload = Buffer.from('{"n":1}');
  const body = deliveryBody({ ...event, payload, eventTimestampedMs: 0 });
  const secret = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
  const headers = deliveryHeaders({ ...event, subscriptionId: 3, body, secret, nowMs: 0, version: VERSION });
  const { webhooks } = document;

  test("has the documented headers and no others", () => {
    for (const [name, { post }] of Object.entries(webhooks)) {
      const documented = post.parameters?.map((parameter) => parameter.name) ?? [];
      const sent = Object.keys(headers).filter((header) => !GENERAL_HEADERS.has(header));
      expect(documented.toSorted(), name).toEqual(sent.toSorted());
    }
  });

  test("has the documented body", () => {
    const ajv = new Ajv2020({ strict: false });
    addFormats.default(ajv);
    ajv.addSchema({ ...document, $id: "openapi" });
    const sent: unknown = JSON.parse(body.toString());
    expect(ajv.validate(schemaOf("event"), sent), ajv.errorsText()).toBe(true);
    for (const name of SERVICE_EVENT_NAMES) expect(ajv.validate(schemaOf(name), sent)).toBe(false);
    expect(Object.keys(webhooks)).toEqual(["event", ...SERVICE_EVENT_NAMES]);
  });
});

/** The key of a webhook's body in Ajv. */
function schemaOf(name: string): string {
  return `openapi#/webhooks/${name}/post/requestBody/content/application~1json/schema`;
}

/** Of any request, and described as security. */
const GENERAL_HEADERS: ReadonlySet<string> = new Set(["Content-Type", "User-Agent", "Authorization"]);

describe("answers", () => {
  let harness: Harness;
  let authorization: string;
  beforeAll(async () => {
    harness = await startHarness();
    authorization = `Bearer ${await harness.token("admin")}`;
  });
  afterAll(() => harness.close());

  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema({ ...document, $id: "openapi" });

  /** Asks, and holds the answer to the schema that the document has for its status. */
  async function conforming(
    method: string,
    path: string,
    template: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<any> {
    const response = await fetch(harness.url + path, {
      method,
      headers: {
        authorization,
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer: unknown = await response.json();
    const place = `paths/${template.replaceAll("~", "~0").replaceAll("/", "~1")}/${method.toLowerCase()}/responses/${response.status}`;
    const documented = document.paths[template]?.[method.toLowerCase()]?.responses[response.status];
    expect(documented, `${method} ${path} answered ${response.status}`).toBeDefined();
    const where = documented?.$ref ?? `#/${place}`;
    const validate = ajv.getSchema(`openapi${where}/content/application~1json/schema`);
    expect(validate, where).toBeDefined();
    expect(validate?.(answer), JSON.stringify({ answer, errors: validate?.errors })).toBe(true);
    return answer;
  }

  test("is what the document says, for every kind of record", async () => {
    const action = { action: "a.b", application: "app", schemata: { type: "object", propertees: {} } };
    await conforming("POST", "/v1/actions", "/v1/actions", action);
    await conforming("POST", "/v1/actions", "/v1/actions", action);
    await conforming("POST", "/v1/actions", "/v1/actions", { ...action, action: "not a name" });
    await conforming("GET", "/v1/actions", "/v1/actions");
    await conforming("GET", "/v1/actions/a.b", "/v1/actions/{name}");
    await conforming("GET", "/v1/actions/none", "/v1/actions/{name}");
    await conforming("PUT", "/v1/actions/a.b", "/v1/actions/{name}", { schemata: action.schemata });
    const revisions = "/v1/actions/{name}/revisions";
    await conforming("GET", "/v1/actions/a.b/revisions", revisions);
    await conforming("GET", "/v1/actions/a.b/revisions/1", `${revisions}/{id}`);
    await conforming("GET", "/v1/actions/a.b/revisions/9", `${revisions}/{id}`);
    const subscription = {
      application: "x",
      subscription: "y",
      action: "a.b",
      handler: "https://hooks.example.com/",
    };
    const made = await conforming("POST", "/v1/subscriptions", "/v1/subscriptions", subscription);
    await conforming("GET", "/v1/subscriptions", "/v1/subscriptions");
    await conforming("GET", `/v1/subscriptions/${made.data.rowid}`, "/v1/subscriptions/{id}");
    const event = { action: "a.b", payload: { n: 1 } };
    const published = await conforming("POST", "/v1/events", "/v1/events", event);
    await conforming("POST", "/v1/events/batch", "/v1/events/batch", { events: [event] });
    await conforming("POST", "/v1/events/batch", "/v1/events/batch", { events: [event, 1] });
    await conforming("POST", "/v1/events/batch", "/v1/events/batch", { events: [1] });
    await conforming("POST", "/v1/events/batch", "/v1/events/batch", {});
    await conforming("POST", "/v1/events/batch?data_id=other", "/v1/events/batch", { events: [event] });
    for (const [path, template, field] of [
      ["/v1/actions/a%00b", "/v1/actions/{name}", "name"],
      ["/v1/actions?application=a%00", "/v1/actions", "application"],
      ["/v1/events?action=a%00", "/v1/events", "action"],
      ["/v1/deliveries?action=%00", "/v1/deliveries", "action"],
      ["/v1/subscriptions?application=%00", "/v1/subscriptions", "application"],
    ] as const) {
      const refused = await conforming("GET", path, template);
      expect(refused, path).toMatchObject({ code: 400, details: { field } });
    }
    const candidate = { schemata: { type: "object", required: ["m"], requird: [] }, replay: 10 };
    const verdict = await conforming("POST", "/v1/actions/a.b/check", "/v1/actions/{name}/check", candidate);
    expect(verdict.data).toMatchObject({ compatible: false, replay: { failed: 3 } });
    await conforming("PUT", "/v1/actions/a.b", "/v1/actions/{name}", { deprecated: true });
    const minimal = { prefer: "return=minimal" };
    await conforming("POST", "/v1/events/batch", "/v1/events/batch", { events: [event, 1] }, minimal);
    await conforming("POST", "/v1/events/batch", "/v1/events/batch", { events: [event] });
    await conforming("PUT", "/v1/actions/a.b", "/v1/actions/{name}", { retired: true });
    await conforming("POST", "/v1/events", "/v1/events", event);
    await conforming("GET", "/v1/events", "/v1/events");
    await conforming("GET", "/v1/events?limit=0", "/v1/events");
    await conforming("GET", `/v1/events/${published.data.rowid}`, "/v1/events/{id}");
    const where = await conforming(
      "GET",
      `/v1/events/${published.data.rowid}/deliveries`,
      "/v1/events/{id}/deliveries",
    );
    await conforming("GET", "/v1/deliveries", "/v1/deliveries");
    await conforming("GET", `/v1/deliveries/${where.data[0].rowid}`, "/v1/deliveries/{id}");
    await conforming("POST", `/v1/deliveries/${where.data[0].rowid}/retry`, "/v1/deliveries/{id}/retry");
    await conforming("POST", `/v1/deliveries/${where.data[0].rowid}/skip`, "/v1/deliveries/{id}/skip");
    const [path, route] = [`/v1/subscriptions/${made.data.rowid}/replay`, "/v1/subscriptions/{id}/replay"];
    const some = { from: "2020-01-01T00:00:00Z", status: "all" };
    await conforming("POST", path, route, { ...some, dry_run: true });
    const started = await conforming("POST", path, route, some);
    await conforming("POST", path, route, some);
    await conforming("POST", path, route, { ...some, dry_run: "yes" });
    await conforming("GET", "/v1/replays", "/v1/replays");
    await conforming("GET", "/v1/doctor", "/v1/doctor");
    await conforming("GET", `/v1/replays/${started.data.rowid}`, "/v1/replays/{id}");
    await conforming("POST", `/v1/replays/${started.data.rowid}/cancel`, "/v1/replays/{id}/cancel");
    await conforming("PUT", `/v1/subscriptions/${made.data.rowid}`, "/v1/subscriptions/{id}", {
      active: false,
    });
    const rotate = "/v1/subscriptions/{id}/rotate-secret";
    await conforming("POST", rotate.replace("{id}", String(made.data.rowid)), rotate, { overlap_ms: 1_000 });
    await conforming("GET", "/v1/subscriptions", "/v1/subscriptions");
    await conforming("DELETE", `/v1/subscriptions/${made.data.rowid}`, "/v1/subscriptions/{id}");
    const token = await conforming("POST", "/v1/tokens", "/v1/tokens", { name: "t", scopes: ["read"] });
    await conforming("GET", "/v1/tokens", "/v1/tokens");
    await conforming("GET", "/v1/whoami", "/v1/whoami");
    await conforming("DELETE", `/v1/tokens/${token.data.rowid}`, "/v1/tokens/{id}");
    await conforming("GET", "/health", "/health");
    expect(await conforming("GET", "/openapi.json", "/openapi.json")).toEqual(document);
  });
});
