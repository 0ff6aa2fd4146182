import { expect, it } from "vitest";
import { openApiDocument } from "../../src/http/openapi.ts";
import {
  bodyOf,
  CANNOT_BE_UNDONE,
  exampleOf,
  foundOperations,
  kindOf,
  NOT_TRIED,
  type OpenApi,
  operationsOf,
} from "../../src/ui/screens/api/open-api.ts";

const document = openApiDocument("1.0.0", { mode: "token", anonymousPublish: false }) as unknown as OpenApi;
const operations = operationsOf(document);

it("names only operations that there are", () => {
  const known = new Set(operations.map(({ operationId }) => operationId));
  expect(
    [...Object.keys(CANNOT_BE_UNDONE), ...Object.keys(NOT_TRIED)].filter((id) => !known.has(id)),
  ).toEqual([]);
});

it("begins each body with what is required", () => {
  const bodies = operations.flatMap((operation) => {
    const schema = bodyOf(operation);
    return schema === undefined ? [] : [[operation.operationId, exampleOf(document, schema)] as const];
  });
  expect(Object.fromEntries(bodies)).toMatchObject({
    createAction: { action: "user.created", application: "billing", schemata: { type: "object" } },
    publishEvent: { action: "user.created", payload: { email: "ada@example.com" } },
    createSubscription: { handler: "https://hooks.example.com/evreg" },
    publishBatch: { events: [{ action: "user.created" }] },
    updateAction: {},
  });
});

it("says in words what a value may be", () => {
  expect(kindOf(document, { type: "integer", minimum: 1, maximum: 500 })).toBe("integer from 1 to 500");
  expect(kindOf(document, { enum: ["a", "b"] })).toBe('"a" | "b"');
  expect(kindOf(document, { type: ["string", "null"] })).toBe("string | null");
  expect(kindOf(document, { type: "array", items: { $ref: "#/components/schemas/Action" } })).toBe(
    "list of Action",
  );
});

it("finds operations by all words of a search", () => {
  expect(foundOperations(operations, "rotate secret").map(({ operationId }) => operationId)).toEqual([
    "rotateSubscriptionSecret",
  ]);
  expect(foundOperations(operations, "delete /v1/tokens").map(({ operationId }) => operationId)).toEqual([
    "revokeToken",
  ]);
});
