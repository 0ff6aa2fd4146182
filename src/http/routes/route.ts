import type { BatchResult } from "../../domain/event.ts";
import type { BodySchema, QuerySchema } from "../../domain/request.ts";
import type { Principal } from "../../domain/token.ts";
import type { Answer, Evreg } from "../../evreg.ts";
import type { ApiRequest } from "../request.ts";
import { PAGE_BYTES, type ResponseBudget } from "../response-budget.ts";
import { listReply, jsonReply, type Reply } from "../response.ts";
import { parseJson } from "../../json/raw-json.ts";
import { omitUndefined } from "../../service/requests.ts";
import type { Clock } from "../../runtime/clock.ts";

/** `open` needs no token, `publish` none where anonymous publishing is on, `token` always one. */
export type Access = "open" | "publish" | "token";

export type JsonSchema = Readonly<Record<string, unknown>>;

/**
 * One route: what it does, and its description. The app registers these, and the OpenAPI document is made from them.
 */
export interface Route {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** Has HEAD refused, where even the headers cost as much as the whole answer. */
  readonly headless?: boolean;
  /** With parameters as `:name`. */
  readonly path: string;
  /** Unique; also the name generated clients give it. */
  readonly operationId: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly access: Access;
  /** The scope its caller needs, in words. */
  readonly scope?: string;
  readonly query?: QuerySchema;
  /** Request headers it reads beside the usual ones, each with its schema. */
  readonly headers?: Readonly<Record<string, JsonSchema>>;
  readonly body?: BodySchema;
  /** What it answers when all went well, by status. */
  readonly answers: Readonly<Record<number, DocumentedAnswer>>;
  /** The failures of its own, beside those every route has. */
  readonly failures: readonly number[];
  handle(evreg: Evreg, request: ApiRequest, context: RouteContext): Reply | Promise<Reply>;
}

export interface DocumentedAnswer {
  readonly description: string;
  /** JSON unless said. */
  readonly mediaType?: string;
  readonly schema: JsonSchema;
  readonly headers?: Readonly<Record<string, JsonSchema>>;
}

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
  /** As its schema says; the service checks both. */
  readonly query: never;
  readonly body: never;
  /** Aborted when the client disconnects; only where the answer needs no budget. */
  readonly signal?: AbortSignal;
}

/** A route that reads or changes records with one call of the port. */
interface Operation extends Pick<
  Route,
  "path" | "operationId" | "summary" | "description" | "query" | "body"
> {
  /** `POST` with a body and `GET` without one, unless said. */
  readonly method?: Route["method"];
  /** What follows `/v1/` in the path, unless said. */
  readonly tag?: string;
  readonly access?: Access;
  /** `read` for `GET` and `write` for all others, unless said. */
  readonly scope?: string;
  /** 200 unless said. */
  readonly status?: 201;
  readonly answer: readonly [description: string, schema: JsonSchema];
  readonly failures?: Route["failures"];
  readonly maxBodyBytes?: number;
  /** Of an answer to `GET`; 0 takes nothing from the budget. Lists beyond `PAGE_BYTES` are of large records. */
  readonly maxBytes?: number;
  readonly run: (evreg: Evreg, input: OperationInput) => Promise<Answer<object, object | undefined>>;
}

export function operation(description: Operation): Route {
  const { run, answer, status = 200, maxBodyBytes = BODY_MAX_BYTES, ...route } = description;
  const { path, body, method = body === undefined ? "GET" : "POST" } = route;
  const { access = "token", failures = [] } = route;
  const { maxBytes = method === "GET" ? PAGE_BYTES : 0 } = route;
  const scope = route.scope ?? (method === "GET" ? "read" : "write");
  const replyTo = async (evreg: Evreg, input: OperationInput): Promise<Reply> => {
    const result = await run(evreg, input);
    const isLarge = maxBytes > PAGE_BYTES && Array.isArray(result.data);
    return isLarge ? listReply(status, result.data as readonly object[]) : jsonReply(status, result);
  };
  return {
    method,
    path,
    operationId: route.operationId,
    tag: route.tag ?? path.split("/")[2]!,
    summary: route.summary,
    ...omitUndefined({ description: route.description, query: route.query, body }),
    access,
    ...(access === "token" ? { scope } : {}),
    answers: { [status]: { description: answer[0], schema: answer[1] } },
    failures,
    async handle(evreg, request, { responses }) {
      const input = {
        query: (route.query === undefined ? {} : request.query(route.query)) as never,
        id: path.includes(":id") ? request.id() : 0,
        body: (body === undefined ? undefined : parseJson(await request.body(maxBodyBytes))) as never,
        name: path.includes(":name") ? request.param("name") : "",
      };
      if (maxBytes === 0) {
        return request.untilDisconnect((signal) => replyTo(evreg, { ...input, signal }));
      }
      return responses.answer(request, maxBytes, () => replyTo(evreg, input));
    },
  };
}

/** What a publish body may hold beside its payload: names, a key, white space. */
export const ENVELOPE_BYTES = 64 * 1024;

/** What the routes need: who a caller is, and the port for it. */
export interface HttpService {
  as(principal: Principal): Evreg;
  /** `undefined` for a token that is unknown, expired or revoked. At once for one that was seen before. */
  authenticate(token: string): Principal | undefined | Promise<Principal | undefined>;
}

/** The slice of the configuration that the routes depend on. */
export interface HttpConfig {
  readonly auth: {
    /** `off`: whoever reaches the listener may do everything. Only ever on loopback. */
    readonly mode: "token" | "off";
    /** Opens the two publish routes to callers without a token. */
    readonly anonymousPublish: boolean;
  };
  /** Whether the data folder has the file `token`, with a token that holds. */
  readonly hasTokenFile: boolean;
  readonly limits: { readonly payloadBytes: number };
  /** For one's own machine: no token needed, loopback callers only. */
  readonly dev: boolean;
}

/** Whether a server requires a token: on the two publish routes, and on all others. */
export interface TokenRequirement {
  readonly publish: boolean;
  readonly token: boolean;
}

/** Counts what is refused before it comes to the service, and the refused items of batches. */
export interface RefusalCounter {
  countRefusal(failure: unknown): void;
  countRefusedItems(result: BatchResult): void;
}

/** What a route may know beside its request. */
export interface RouteContext {
  readonly limits: HttpConfig["limits"];
  readonly version: string;
  readonly requiresToken: TokenRequirement;
  /** Through which large reads go. */
  readonly responses: ResponseBudget;
  readonly refusals: RefusalCounter | undefined;
  readonly clock: Clock;
  /** Aborted once the server is to stop, with what to say to whom would hold that up. */
  readonly stopping: AbortSignal;
}

// What records and answers are made of, for the OpenAPI document.

export const field = {
  rowid: {
    type: "integer",
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    description: "Assigned by the service; only grows, and after a restore far beyond 32 bits.",
  },
  timestamp: { type: "string", format: "date-time", description: "ISO 8601 UTC with milliseconds." },
  nullableTimestamp: { type: ["string", "null"], format: "date-time" },
  text: { type: "string" },
  count: { type: "integer", minimum: 0 },
} as const satisfies Readonly<Record<string, JsonSchema>>;

/** An object that has exactly these members. */
export function record(
  properties: Readonly<Record<string, JsonSchema>>,
  optional: readonly string[] = [],
): JsonSchema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: "object", properties, required, additionalProperties: false };
}

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
      "Where one field is at fault: `{ field, message, value }`. Where a payload does not conform to its action's schema also `errors`, a list of the same form: the rules that it breaks, at most 20 (of a batch for its first 20 such items; of others, and while evreg has much to check, the first alone), and no more than come to 16 KiB. A name of more than 128 characters in `field`, and a `field` of more than 2,048, have `…` for their middle; `message` and `value` are cut after 1 KiB. What a batch refuses past 1 MiB of such answers, or while too many large answers are on their way, has no `errors`, and each text is cut after 256 bytes.",
    additionalProperties: true,
  },
  code: { type: "integer", description: "The HTTP status." },
} as const;
