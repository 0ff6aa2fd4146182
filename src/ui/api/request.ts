import type { ErrorBody } from "../../domain/error.ts";
import { shared } from "./shared.ts";
import { readSession } from "./session-token.ts";

export interface Envelope<T, M = Readonly<Record<string, unknown>>> {
  readonly data: T;
  readonly meta?: M;
}

export interface SentRequest {
  readonly method?: string;
  readonly body?: unknown;
  /** JSON text that is sent as it is, instead of `body`: a payload or schema as a person wrote it. */
  readonly text?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal | undefined;
}

/** Where the API is: beside the folder of this page, also under a proxy's prefix. */
export function apiUrl(path: string): string {
  const page = new URL(location.href);
  page.hash = "";
  page.search = "";
  return new URL(`..${path}`, page).href;
}

/**
 * The answer of the API, whatever its status.
 * @throws ApiError if the server cannot be reached
 */
export async function ask(path: string, request: SentRequest = {}): Promise<Response> {
  const token = readSession();
  const body = request.text ?? (request.body === undefined ? undefined : JSON.stringify(request.body));
  try {
    return await fetch(apiUrl(path), {
      method: request.method ?? "GET",
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...request.headers,
      },
      ...(body === undefined ? {} : { body }),
      ...(request.signal === undefined ? {} : { signal: request.signal }),
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
  } catch (error) {
    if (request.signal?.aborted === true) throw error;
    throw new ApiError(0, "The server cannot be reached.");
  }
}

/** The text of a good answer, as it came. @throws ApiError */
export async function askText(path: string, request?: SentRequest): Promise<string> {
  const response = await ask(path, request);
  const text = await response.text();
  if (!response.ok) throw errorOf(response, text);
  return text;
}

/** A good answer. Numbers past 2^53 are rounded: payloads are read by `askText`. @throws ApiError */
export async function askJson<T, M = Readonly<Record<string, unknown>>>(
  path: string,
  request?: SentRequest,
): Promise<Envelope<T, M>> {
  return JSON.parse(await askText(path, request)) as Envelope<T, M>;
}

/** Grows with each change that was asked for here. */
export const changes = shared(0);

/**
 * Asks for a change. All that is shown is then read again, also where it was refused: something else may have come before.
 * @throws ApiError
 */
export async function send<T, M = Readonly<Record<string, unknown>>>(
  method: "POST" | "PUT" | "DELETE",
  path: string,
  request: SentRequest = {},
): Promise<Envelope<T, M>> {
  try {
    return await askJson<T, M>(path, { ...request, method });
  } finally {
    changes.value += 1;
  }
}

/** A failure as an `ApiError`. */
export function asApiError(error: unknown): ApiError {
  return error instanceof ApiError ? error : new ApiError(0, String(error));
}

/** What a failed answer says. */
function errorOf(response: Response, text: string): ApiError {
  try {
    const { error, details } = JSON.parse(text) as ErrorBody;
    return new ApiError(response.status, error, details);
  } catch {
    return new ApiError(response.status, `The server answered ${response.status} without a reason.`);
  }
}

export type Query = Readonly<Record<string, string | number | boolean | undefined | null>>;

/** A path with the members of a query that have a value. */
export function withQuery(path: string, query: Query): string {
  const given = Object.entries(query).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  if (given.length === 0) return path;
  return `${path}?${new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString()}`;
}

/** What the API answered instead, that it could not be asked (`status` 0), or what the page itself does not send (422). */
export class ApiError extends Error {
  readonly status: number;
  readonly details: Readonly<Record<string, unknown>>;

  constructor(status: number, message: string, details: Readonly<Record<string, unknown>> = {}) {
    super(message);
    this.status = status;
    this.details = details;
  }
}

/**
 * A new idempotency key for what a person publishes. It is kept until an answer comes: a browser sends a request again by
 * itself where the connection ends, and a person where no answer came, and neither may publish twice.
 */
export function newAttemptKey(): string {
  // `randomUUID` is there only where the page came encrypted or from this machine.
  return crypto.getRandomValues(new Uint8Array(16)).join("-");
}
