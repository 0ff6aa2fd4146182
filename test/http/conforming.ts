import addFormats from "ajv-formats";
import { Ajv2020 } from "ajv/dist/2020.js";
import { expect } from "vitest";
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
  readonly webhooks: Record<string, { post: Operation }>;
  readonly components: { schemas: Record<string, object>; responses: Record<string, object> };
}

export const document = openApiDocument(VERSION, { token: true, publish: true }) as unknown as Document;
export const routes: readonly Route[] = [...ROUTES, OPENAPI_ROUTE];

const templates = routes
  .map(({ path }) => openApiPath(path))
  // Of two that match, the one with the longer fixed part: `/v1/events/batch` before `/v1/events/{id}`.
  .toSorted((one, other) => one.replaceAll(/\{\w+\}/g, "").length - other.replaceAll(/\{\w+\}/g, "").length)
  .toReversed()
  .map((template) => ({ template, form: new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`) }));

/** Knows the document as `openapi`. */
export const ajv = new Ajv2020({ strict: false, allErrors: true });
addFormats.default(ajv);
ajv.addSchema({ ...document, $id: "openapi" });

/** Holds an answer in JSON to the schema that the document has for its status. */
export function expectConforming(method: string, path: string, status: number, answer: unknown): void {
  const [withoutQuery = ""] = path.split("?");
  const { template } = templates.find(({ form }) => form.test(withoutQuery)) ?? { template: withoutQuery };
  const documented = document.paths[template]?.[method.toLowerCase()]?.responses[status];
  expect(documented, `${method} ${template} answered ${status}: ${JSON.stringify(answer)}`).toBeDefined();
  const escaped = template.replaceAll("~", "~0").replaceAll("/", "~1");
  const place = documented?.$ref ?? `#/paths/${escaped}/${method.toLowerCase()}/responses/${status}`;
  const validate = ajv.getSchema(`openapi${place}/content/application~1json/schema`);
  expect(validate, place).toBeDefined();
  expect(validate?.(answer), JSON.stringify({ answer, errors: validate?.errors })).toBe(true);
}
