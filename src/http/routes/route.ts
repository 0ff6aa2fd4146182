import type { Config } from "../../config/keys.ts";
import type { InputSchema, JsonSchema } from "../../domain/request.ts";
import type { Answer } from "../../evreg.ts";
import { record } from "../../model/field.ts";
import { OPERATIONS } from "../../api-operations.ts";
import type { LiveStreams } from "../live-streams.ts";
import type { ApiRequest } from "../request.ts";
import { PAGE_BYTES, type ResponseBudget } from "../response-budget.ts";
import { type Chunks, jsonReply, recordParts, type Reply, replyInParts } from "../response.ts";
import type { PublishCounts } from "../../metrics/counters.ts";
import type { Service, ServicePort } from "../../service/service.ts";

/** `open` needs no token, `publish` none where anonymous publishing is on, `token` always one. */
export type RouteAccess = "open" | "publish" | "token";

/**
 * One route: what it does, and its description. The app registers these, and the OpenAPI document is made from them.
 */
export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** The path with its parameters as `:name`. */
  readonly path: string;
  /** Unique; also the name generated clients give it. */
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly access: RouteAccess;
  /** The scope its caller needs, in words. */
  readonly scope?: string;
  readonly query?: InputSchema;
  /** Request headers it reads beside the usual ones, each with its schema. */
  readonly headers?: Readonly<Record<string, JsonSchema>>;
  readonly body?: InputSchema;
  /** What it answers when all went well, by status. */
  readonly answers: Readonly<Record<number, DocumentedAnswer>>;
  /** The failures of its own, beside those every route has. */
  readonly failures: readonly number[];
  handle(evreg: ServicePort, request: ApiRequest, context: RouteContext): Reply | Promise<Reply>;
}

export interface DocumentedAnswer {
  readonly description: string;
  /** JSON unless said. */
  readonly mediaType?: string;
  readonly schema: JsonSchema;
  readonly headers?: Readonly<Record<string, JsonSchema>>;
}

/** What a body with a payload may have beside it: names, a key and white space. */
export const BESIDE_PAYLOAD_BYTES = 64 * 1024;

/** A body with a filter at most, which ends at 64 KiB. */
export const BODY_MAX_BYTES = 256 * 1024;

/** A body with an action's schema, which ends at 256 KiB written without spaces. */
export const SCHEMA_BODY_MAX_BYTES = 1024 * 1024;

/** What an operation is given of its request. */
interface OperationInput {
  /** `:id` of the path. */
  readonly id: number;
  /** `:name` of the path. */
  readonly name: string;
  /** The query as its schema says; the service checks both. */
  readonly query: never;
  readonly body: never;
  /** Aborted when the client disconnects; only where the answer needs no budget. */
  readonly signal?: AbortSignal;
}

/** What of a route need not be said. */
interface RouteDefaults extends Partial<Pick<Route, "access">> {
  /** Beside 404, which a route with a parameter in its path has anyway. */
  readonly failures?: readonly number[];
  /** By default the part of the path after `/v1/`. */
  readonly tag?: string;
  /** Of a route that takes a token, by default `read` for `GET` and `write` for all others. */
  readonly scope?: string;
}

interface OwnRoute
  extends RouteDefaults, Pick<Route, "description" | "query" | "headers" | "body" | "answers" | "handle"> {}

/** A route that answers in a way of its own. */
export function routeAt(target: string, operationId: string, summary: string, route: OwnRoute): Route {
  const [method, path] = target.split(" ") as [Route["method"], string];
  const { access = "token", tag = path.split("/")[2]!, failures: more = [], ...own } = route;
  const failures = path.includes(":") ? [404, ...more] : more;
  const scoped = access === "token" ? { scope: method === "GET" ? "read" : "write" } : {};
  return { method, path, operationId, tag, summary, access, failures, ...scoped, ...own };
}

interface OperationRoute extends RouteDefaults, Pick<Route, "description" | "query" | "body"> {
  /** By default 200. */
  readonly status?: 200 | 201;
  readonly answer: readonly [description: string, schema: JsonSchema];
  readonly maxBodyBytes?: number;
  /** How a body with a payload is read, by its bytes. */
  readonly readPayload?: (bytes: Uint8Array, limits: HttpConfig["limits"]) => unknown;
  /** The largest answer to a `GET`; 0 takes nothing from the budget. */
  readonly maxBytes?: number;
  /** By default the call of the port. A list that may be long, or whose records are large, is answered by its pages. */
  readonly run?: (
    evreg: ServicePort,
    input: OperationInput,
  ) => Promise<Answer<object, object | undefined>> | AsyncIterable<readonly object[]>;
}

/** The call of the port with what it takes of its request. */
function callOf(name: keyof typeof OPERATIONS): NonNullable<OperationRoute["run"]> {
  const { takes } = OPERATIONS[name];
  return (evreg, input) => {
    let found: unknown = evreg;
    for (const step of name.split(".")) found = (found as Readonly<Record<string, unknown>>)[step];
    const method = found as (...all: readonly unknown[]) => Promise<Answer<object>>;
    return method(...takes.map((part) => input[part]));
  };
}

/** A route that reads or changes records with one call of the port. */
export function operation(
  name: keyof typeof OPERATIONS,
  operationId: string,
  summary: string,
  {
    run = callOf(name),
    answer: [description, schema],
    status = 200,
    maxBodyBytes = BODY_MAX_BYTES,
    readPayload,
    maxBytes: mostAnswered,
    ...own
  }: OperationRoute,
): Route {
  const { target } = OPERATIONS[name];
  const maxBytes = mostAnswered ?? (target.startsWith("GET ") ? PAGE_BYTES : 0);
  const replyTo = async (evreg: ServicePort, input: OperationInput): Promise<Reply> => {
    const result = run(evreg, input);
    return result instanceof Promise ? jsonReply(status, await result) : replyInParts(recordParts(result));
  };
  return routeAt(target, operationId, summary, {
    ...own,
    answers: { [status]: { description, schema } },
    async handle(evreg, request, { responses, config: { limits } }) {
      const path = {
        id: target.includes(":id") ? request.id() : 0,
        name: target.includes(":name") ? request.param("name") : "",
      };
      let body: unknown;
      if (readPayload !== undefined) {
        body = await readPayload(await request.body(limits.payloadBytes + BESIDE_PAYLOAD_BYTES), limits);
      } else if (own.body !== undefined) body = await request.json(maxBodyBytes);
      const input = { ...path, query: request.query as never, body: body as never };
      if (maxBytes === 0) {
        return request.untilDisconnect((signal) => replyTo(evreg, { ...input, signal }));
      }
      return responses.answer(request, maxBytes, () => replyTo(evreg, input));
    },
  });
}

/** Tells who a caller is, and has the port for it. */
export type HttpService = Pick<Service, "as" | "tokens">;

/** The slice of the configuration that the routes depend on. */
export interface HttpConfig extends Pick<Config, "auth" | "limits" | "ui"> {
  /** Whether the data folder has the file `token`, with a token that holds. */
  readonly hasTokenFile: boolean;
}

/** What a route may know beside its request. */
export interface RouteContext {
  readonly config: HttpConfig;
  /** The OpenAPI document. Anybody may read it, and all answers share the same bytes, however slowly they are read. */
  readonly document: () => Chunks;
  /** Large reads go through it. */
  readonly responses: ResponseBudget;
  readonly counts: PublishCounts;
  readonly streams: LiveStreams;
  /** Aborted once the server is to stop, with what to say to whom would hold that up. */
  readonly stopping: AbortSignal;
}

// What answers are made of, for the OpenAPI document.

export function ref(name: string): JsonSchema {
  return { $ref: `#/components/schemas/${name}` };
}

/** `{ data: <record> }` */
export function one(name: string, meta?: JsonSchema): JsonSchema {
  return meta === undefined ? record({ data: ref(name) }) : record({ data: ref(name), meta }, ["meta"]);
}

/** `{ data: [<record>, …] }` */
export function many(name: string, meta?: JsonSchema): JsonSchema {
  const data: JsonSchema = { type: "array", items: ref(name) };
  return meta === undefined ? record({ data }) : record({ data, meta });
}

/** What every failure has. */
export const failure = {
  error: { type: "string", description: "A sentence: what went wrong, and what to do." },
  details: {
    type: "object",
    description:
      "For a wrong field: `{ field, message, value }`. For a payload that does not conform to its action's schema also `errors`, a list of the same form with the rules that it breaks: at most 20 rules and 16 KiB. Names of more than 128 characters in `field`, and a `field` of more than 2,048, are shortened in the middle with `…`; `message` and `value` are cut after 1 KiB. A refusal in a batch has no `errors`, and each text is cut after 256 bytes.",
    additionalProperties: true,
  },
  code: { type: "integer", description: "The HTTP status." },
} as const;
