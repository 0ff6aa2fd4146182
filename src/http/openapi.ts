import { actionName, type InputSchema, rowid as id } from "../domain/request.ts";
import { WEBHOOK_BODY, WEBHOOK_HEADERS } from "../domain/webhook.ts";
import { ACTION_ROUTES } from "./routes/actions.ts";
import { EVENT_ROUTES } from "./routes/events.ts";
import { OPERATION_ROUTES } from "./routes/operations.ts";
import { RECORDS } from "./routes/records.ts";
import type { Field } from "../model/field.ts";
import { SUBSCRIPTION } from "../model/subscription.ts";
import { type DocumentedAnswer, type HttpConfig, ref, routeAt, type Route } from "./routes/route.ts";
import { SUBSCRIPTION_ROUTES } from "./routes/subscriptions.ts";

const COMMON_FAILURES = [400, 500, 503];
const TOKEN_FAILURES = [401, 403];
const BODY_FAILURES = [413, 415, 422];

interface DocumentedFailure extends Pick<DocumentedAnswer, "description" | "headers"> {
  readonly name: string;
}

const RETRY_AFTER = { "Retry-After": { type: "integer" } } as const;

const FAILURES: Readonly<Record<number, DocumentedFailure>> = {
  400: { name: "Malformed", description: "Malformed JSON, path or query." },
  401: {
    name: "Unauthorized",
    description: "The token is missing or not valid.",
    headers: { "WWW-Authenticate": { type: "string" } },
  },
  403: { name: "Forbidden", description: "The token's scopes do not allow this." },
  404: {
    name: "NotFound",
    description:
      "No such record: `details.record` is its noun, `details.suggestion` the name that was probably meant, if one is close to it and may be read. `details.field` is `action` for a missing action.",
  },
  409: { name: "Conflict", description: "A duplicate, a breaking change, or impossible in this state." },
  410: { name: "Gone", description: "The action is retired; publish to `details.successor` instead." },
  413: { name: "TooLarge", description: "Over a size limit: `details` is `{ limit, size }`." },
  415: { name: "UnsupportedMediaType", description: "The body is not plain JSON." },
  422: { name: "Invalid", description: "A field is invalid: `details` is `{ field, message, value }`." },
  500: { name: "Internal", description: "An internal failure." },
  429: {
    name: "TooManyRequests",
    description:
      "The caller has its share of what all share: `details` is `{ limit, held, others }`. End one, or try again in a moment.",
    headers: RETRY_AFTER,
  },
  503: {
    name: "Unavailable",
    description:
      "The store cannot commit, large answers use all memory reserved for them, all streams are open, or too many schemas wait to be checked. Try again after `Retry-After` seconds.",
    headers: RETRY_AFTER,
  },
};

/** The members of a subscription that only those of one mode have. */
function onlyWith(mode: "push" | "pull"): string {
  const names = Object.entries<Field>(SUBSCRIPTION).filter(([, { only }]) => only?.mode === mode);
  return names.map(([name]) => `\`${name}\``).join(", ");
}

const FIELD_RULES = `Five rules concern several fields, or a field and stored data. A request that conforms to the schemas is refused only by these:

- *time range*: \`from\` is before \`to\`, and \`expires_at\` is in the future (400, in a body 422).
- *one way to page*: \`page\` and \`after\` exclude each other (400).
- *given twice*: values given in two places are equal (422): the idempotency key in the header and in the body, and a whole Action and the stored one. A key that the application has used before needs the same action and payload (409).
- *only together*: \`bearer_token\` with \`bearer: own\`, \`on_exhausted\` with \`ordered\`, ${onlyWith("push")} with the mode \`push\`, which needs a \`handler\`; ${onlyWith("pull")}, claims and results with the mode \`pull\`, and results with leases of that subscription; \`successor\` with \`deprecated\` or \`retired\` (422).
- *contents*: \`schemata\` and \`filter\` are Draft 7 schemas within evreg's limits, a payload conforms to its action's schema, names that begin with \`evreg.\` are reserved, a handler is a URL that deliveries may go to, and headers of the service itself cannot be replaced (422). A batch of which nothing could be stored is 422, whatever the reason.`;

export const OPENAPI_ROUTE: Route = routeAt("GET /openapi.json", "getOpenApi", "This document", {
  tag: "health",
  access: "open",
  answers: { 200: { description: "OpenAPI 3.1.", schema: { type: "object", additionalProperties: true } } },
  handle: (_evreg, _request, { document }) => ({ status: 200, body: document() }),
});

/** The OpenAPI 3.1 document of the same routes that the app registers, with the schemas that check their input. */
export function openApiDocument(version: string, auth: HttpConfig["auth"]): Record<string, unknown> {
  const routes = [...ROUTES, OPENAPI_ROUTE];
  const document = {
    openapi: "3.1.0",
    info: {
      title: "evreg",
      version,
      description: `Event registry and webhook delivery service.\n\n${FIELD_RULES}`,
      license: { name: "MIT", identifier: "MIT" },
    },
    servers: [{ url: "/" }],
    tags: [...new Set(routes.map(({ tag }) => tag))].map((name) => ({ name })),
    paths: pathsOf(routes, auth),
    webhooks: { event: { post: WEBHOOK } },
    components: {
      schemas: { ...RECORDS, ...bodiesOf(routes), Webhook: WEBHOOK_BODY },
      responses: Object.fromEntries(
        Object.values(FAILURES).map(({ name, ...failed }) => [
          name,
          response({ ...failed, schema: ref("Error") }),
        ]),
      ),
      headers: { RequestId: { description: "In every answer and in the log.", schema: { type: "string" } } },
      securitySchemes: {
        token: { type: "http", scheme: "bearer", bearerFormat: "evreg_…" },
        secret: {
          type: "http",
          scheme: "bearer",
          description:
            "In a delivery: the subscription's secret or a value of its own, unless its `bearer` is `none`.",
        },
      },
    },
  };
  // Removes members that are `undefined`.
  return JSON.parse(JSON.stringify(document)) as Record<string, unknown>;
}

/** What evreg sends to handlers. */
const WEBHOOK = {
  operationId: "receiveEvent",
  summary: "An event of the subscription's action",
  security: [{ secret: [] }, {}],
  parameters: Object.entries(WEBHOOK_HEADERS).map(([name, description]) => ({
    name,
    in: "header",
    required: true,
    description,
    schema: { type: "string" },
  })),
  requestBody: { required: true, content: { "application/json": { schema: ref("Webhook") } } },
  responses: {
    "2XX": { description: "The delivery is done." },
    410: { description: "evreg deactivates the subscription and holds its deliveries." },
    default: {
      description: "evreg tries again after `Retry-After` seconds, or by the subscription's schedule.",
    },
  },
};

/** Request bodies are components under their titles, so that generated clients name them alike. */
function bodiesOf(routes: readonly Route[]): Record<string, InputSchema> {
  const bodies: Record<string, InputSchema> = {};
  for (const { body } of routes) if (body !== undefined) bodies[body.title] = body;
  return bodies;
}

function pathsOf(routes: readonly Route[], auth: HttpConfig["auth"]): Record<string, unknown> {
  const paths: Record<string, Record<string, unknown>> = {};
  for (const route of routes) {
    (paths[openApiPath(route.path)] ??= {})[route.method.toLowerCase()] = operation(route, auth);
  }
  return paths;
}

/** `/v1/events/:id` as OpenAPI writes it. */
export function openApiPath(path: string): string {
  return path.replace(/:(\w+)/g, "{$1}");
}

function operation(route: Route, auth: HttpConfig["auth"]): Record<string, unknown> {
  const { operationId, tag, summary, access, body } = route;
  const scope = route.scope && `Needs the scope \`${route.scope}\`.`;
  const description = [route.description, scope].filter((text) => text !== undefined).join("\n\n");
  const parameters = parametersOf(route);
  const content = body && { "application/json": { schema: ref(body.title) } };
  const needsNone = auth.mode === "off" || (access === "publish" && auth.anonymousPublish);
  return {
    operationId,
    tags: [tag],
    summary,
    description: description === "" ? undefined : description,
    // The empty alternative means that this server requires no token here.
    security: access === "open" ? [] : needsNone ? [{ token: [] }, {}] : [{ token: [] }],
    parameters: parameters.length === 0 ? undefined : parameters,
    requestBody: content && { required: true, content },
    responses: responsesOf(route),
  };
}

function parametersOf(route: Route): Record<string, unknown>[] {
  const { path, query, headers = {} } = route;
  const inPath = [...path.matchAll(/:(\w+)/g)].map(([, name]) => ({
    name,
    in: "path",
    required: true,
    schema: name === "id" ? id : actionName,
  }));
  const inQuery = Object.entries(query?.properties ?? {}).map(([name, schema]) => ({
    name,
    in: "query",
    schema,
  }));
  const inHeader = Object.entries(headers).map(([name, schema]) => ({ name, in: "header", schema }));
  return [...inPath, ...inQuery, ...inHeader];
}

function responsesOf(route: Route): Record<string, unknown> {
  const responses: Record<string, unknown> = {};
  for (const [status, answer] of Object.entries(route.answers)) responses[status] = response(answer);
  const failures = [
    ...COMMON_FAILURES,
    ...(route.access === "open" ? [] : TOKEN_FAILURES),
    ...(route.body === undefined ? [] : BODY_FAILURES),
    ...route.failures,
  ];
  for (const status of failures) {
    responses[status] ??= { $ref: `#/components/responses/${FAILURES[status]?.name}` };
  }
  return responses;
}

function response({
  description,
  mediaType = "application/json",
  schema,
  headers = {},
}: DocumentedAnswer): Record<string, unknown> {
  return {
    description,
    headers: {
      "X-Request-Id": { $ref: "#/components/headers/RequestId" },
      ...Object.fromEntries(Object.entries(headers).map(([name, header]) => [name, { schema: header }])),
    },
    content: { [mediaType]: { schema } },
  };
}

/** Every route but that of the document that describes them. */
export const ROUTES: readonly Route[] = [
  ...ACTION_ROUTES,
  ...EVENT_ROUTES,
  ...SUBSCRIPTION_ROUTES,
  ...OPERATION_ROUTES,
];
