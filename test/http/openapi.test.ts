import { describe, expect, test } from "vitest";
import { openApiDocument, openApiPath } from "../../src/http/openapi.ts";
import { ajv, document, type Document, type Operation, routes } from "./conforming.ts";
import { VERSION } from "./harness.ts";
import { signedRequest } from "../support/signed-request.ts";

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
  routes.flatMap(({ body }) => (body === undefined ? [] : [body.title])),
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

  test("all its references resolve", () => {
    const all = references(document);
    expect(all.length).toBeGreaterThan(50);
    for (const reference of all) expect(resolve(reference), reference).toBeDefined();
  });

  test("percentiles have a name, as programs that were generated from it use it", () => {
    const named = { $ref: "#/components/schemas/Percentiles" };
    for (const name of ["Figures", "ActionFigures", "SubscriptionFigures"]) {
      expect(document.components.schemas[name]).toMatchObject({
        properties: { latency_ms: named, attempt_ms: named },
      });
    }
  });

  test("each operation has a unique id, a summary, and the security of its route", () => {
    const names = operations().map(({ operation }) => operation.operationId);
    expect(new Set(names).size).toBe(names.length);
    for (const { path, operation } of operations()) {
      expect(operation.summary).toMatch(/^[A-Z].*[^.]$/);
      const isOpen = !(path.startsWith("/v1/") || path === "/metrics");
      expect(operation.security.length === 0, path).toBe(isOpen);
    }
  });

  test("what is made is 201, what was there already 200, and a batch may be both", () => {
    const others = operations().flatMap(({ path, method, operation }) => {
      const successes = Object.keys(operation.responses).filter((status) => Number(status) < 300);
      return successes.join() === "200" ? [] : [[`${method} ${path}`, successes.join()]];
    });
    expect(Object.fromEntries(others)).toEqual({
      "post /v1/actions": "201",
      "post /v1/events": "200,201",
      "post /v1/events/batch": "201,207",
      "post /v1/subscriptions": "201",
      "post /v1/subscriptions/{id}/replay": "200,201",
      "post /v1/tokens": "201",
    });
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
    const open = openApiDocument(VERSION, { mode: "off", anonymousPublish: false }) as unknown as Document;
    const anonymous = openApiDocument(VERSION, {
      mode: "token",
      anonymousPublish: true,
    }) as unknown as Document;
    const token = [{ token: [] }];
    expect(document.paths["/v1/events"]?.["post"]?.security).toEqual(token);
    expect(open.paths["/v1/tokens"]?.["get"]?.security).toEqual([...token, {}]);
    expect(anonymous.paths["/v1/events"]?.["post"]?.security).toEqual([...token, {}]);
    expect(anonymous.paths["/v1/tokens"]?.["get"]?.security).toEqual(token);
  });

  test("has valid schemas, and all errors have one shape", () => {
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
  const secret = `whsec_${Buffer.alloc(32, 1).toString("base64")}`;
  const { headers, body } = signedRequest({ secret });

  test("has the documented headers and no others", () => {
    const documented = document.webhooks.event.post.parameters?.map(({ name }) => name) ?? [];
    const sent = Object.keys(headers).filter((header) => !GENERAL_HEADERS.has(header));
    expect(documented.toSorted()).toEqual(sent.toSorted());
  });

  test("has the documented body", () => {
    const sent: unknown = JSON.parse(body.toString());
    expect(ajv.validate("openapi#/components/schemas/Webhook", sent), ajv.errorsText()).toBe(true);
  });
});

/** Of any request, and described as security. */
const GENERAL_HEADERS: ReadonlySet<string> = new Set(["Content-Type", "User-Agent", "Authorization"]);
