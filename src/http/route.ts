import type { QuerySchema } from "../domain/query.ts";
import type { BodySchema } from "../domain/requests/members.ts";
import type { Evreg } from "../evreg.ts";
import type { Incoming } from "./incoming.ts";
import type { Reply } from "./reply.ts";
import type { RouteContext } from "./service.ts";

/** `open` asks for no token, `publish` for none where anonymous publishing is on, `token` always. */
export type Access = "open" | "publish" | "token";

export type JsonSchema = Readonly<Record<string, unknown>>;

/**
 * One route: what it does, and all that is told about it. The table of these registers the routes and is the OpenAPI
 * document, so neither can be without the other.
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
  handle(evreg: Evreg, incoming: Incoming, context: RouteContext): Reply | Promise<Reply>;
}

export interface DocumentedAnswer {
  readonly description: string;
  /** JSON unless said. */
  readonly mediaType?: string;
  readonly schema: JsonSchema;
  readonly headers?: Readonly<Record<string, JsonSchema>>;
}

/** A body of any route but those below and the publishing ones: filters are the largest thing in it, and end at 64 KiB. */
export const BODY_MAX_BYTES = 256 * 1024;

/** A body with an action's schema, which ends at 256 KiB written without spaces. */
export const SCHEMA_BODY_MAX_BYTES = 1024 * 1024;

/** What a publish body may hold beside its payload: names, a key, white space. */
export const ENVELOPE_BYTES = 64 * 1024;
