import { channel } from "node:diagnostics_channel";
import addFormats from "ajv-formats";
import { Ajv2020 } from "ajv/dist/2020.js";
import { afterAll, afterEach, beforeAll, expect } from "vitest";
import { OPENAPI_ROUTE, openApiDocument, openApiPath, ROUTES } from "../../src/http/openapi.ts";
import type { Route } from "../../src/http/routes/route.ts";
import { VERSION } from "./harness.ts";

export interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly security: readonly object[];
  readonly parameters?: readonly { name: string; in: string; required?: boolean; schema: object }[];
  readonly requestBody?: { content: Record<string, { schema: object }> };
  readonly responses: Record<string, { $ref?: string; content?: Record<string, { schema: object }> }>;
}

export interface Document {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, Operation>>;
  readonly webhooks: { readonly event: { readonly post: Operation } };
  readonly components: { schemas: Record<string, object>; responses: Record<string, object> };
}

export const document = openApiDocument(VERSION, {
  mode: "token",
  anonymousPublish: false,
}) as unknown as Document;
export const routes: readonly Route[] = [...ROUTES, OPENAPI_ROUTE];

const templates = routes
  .map(({ path }) => openApiPath(path))
  // Of two that match, the one with the longer fixed part: `/v1/events/batch` before `/v1/events/{id}`.
  .toSorted((one, other) => one.replaceAll(/\{\w+\}/g, "").length - other.replaceAll(/\{\w+\}/g, "").length)
  .toReversed()
  .map((template) => ({ template, form: new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`) }));

function templateOf(path: string): string | undefined {
  const [withoutQuery = ""] = path.split("?");
  return templates.find(({ form }) => form.test(withoutQuery))?.template;
}

/** Knows the document as `openapi`. */
export const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema({ ...document, $id: "openapi" });

/** Holds an answer in JSON to the schema that the document has for its status. */
export function expectConforming(method: string, path: string, status: number, answer: unknown): void {
  const template = templateOf(path) ?? path;
  const documented = document.paths[template]?.[method.toLowerCase()]?.responses[status];
  expect(documented, `${method} ${template} answered ${status}: ${JSON.stringify(answer)}`).toBeDefined();
  const escaped = template.replaceAll("~", "~0").replaceAll("/", "~1");
  const place = documented?.$ref ?? `#/paths/${escaped}/${method.toLowerCase()}/responses/${status}`;
  const validate = ajv.getSchema(`openapi${place}/content/application~1json/schema`);
  expect(validate, place).toBeDefined();
  expect(validate?.(answer), JSON.stringify({ answer, errors: validate?.errors })).toBe(true);
}

interface Exchange {
  readonly request: { readonly method: string; readonly path: string };
  readonly response: { readonly statusCode: number; readonly headers: readonly Buffer[] };
  readonly chunk: Buffer;
}

/** Holds each whole answer in JSON that the tests of this file get through undici to the document. */
export function useConformingAnswers(): void {
  const begun = new Map<Exchange["request"], { readonly status: number; readonly chunks: Buffer[] }>();
  let failures: unknown[] = [];
  let held = 0;
  const listeners: Readonly<Record<string, (exchange: Exchange) => void>> = {
    "undici:request:headers": ({ request, response: { statusCode: status, headers } }) => {
      // A name such as `.` leads to no route.
      const isDocumented = status !== 404 || templateOf(request.path) !== undefined;
      const isJson = headers.some((value) => value.equals(JSON_TYPE));
      if (isDocumented && isJson) begun.set(request, { status, chunks: [] });
    },
    "undici:request:bodyChunkReceived": ({ request, chunk }) => begun.get(request)?.chunks.push(chunk),
    "undici:request:trailers": ({ request }) => {
      const answer = begun.get(request);
      if (answer === undefined) return;
      begun.delete(request);
      try {
        const body: unknown = JSON.parse(Buffer.concat(answer.chunks).toString());
        expectConforming(request.method, request.path, answer.status, body);
        held += 1;
      } catch (error) {
        failures.push(error);
      }
    },
  };
  // Of Node's own types, a listener takes a message of any kind.
  const each = (act: "subscribe" | "unsubscribe"): void => {
    for (const [name, listener] of Object.entries(listeners)) channel(name)[act](listener as () => void);
  };
  beforeAll(() => each("subscribe"));
  afterAll(() => {
    each("unsubscribe");
    expect(held).toBeGreaterThan(0);
  });
  afterEach(() => {
    const all = failures;
    failures = [];
    expect(all).toEqual([]);
  });
}

const JSON_TYPE = Buffer.from("application/json");
