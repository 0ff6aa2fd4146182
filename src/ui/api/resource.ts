import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { ErrorBody } from "../../domain/error.ts";
import { identity, loseSession, readSession } from "./session.ts";
import { shared } from "./shared.ts";

export type AnyMeta = Readonly<Record<string, unknown>>;

export interface Envelope<T, M = AnyMeta> {
  readonly data: T;
  readonly meta?: M;
}

export interface SentRequest {
  readonly method?: string;
  readonly body?: unknown;
  /** JSON text that is sent as it is, instead of `body`: a payload or schema as a person wrote it. */
  readonly text?: string | undefined;
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
  const { method = "GET", headers, signal = null } = request;
  const body = request.text ?? (request.body === undefined ? null : JSON.stringify(request.body));
  try {
    return await fetch(apiUrl(path), {
      method,
      headers: {
        ...(token !== null && { authorization: `Bearer ${token}` }),
        ...(body !== null && { "content-type": "application/json" }),
        ...headers,
      },
      body,
      signal,
      cache: "no-store",
      credentials: "omit",
      redirect: "error",
    });
  } catch (error) {
    if (signal?.aborted === true) throw error;
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
export async function askJson<T, M = AnyMeta>(path: string, request?: SentRequest): Promise<Envelope<T, M>> {
  return JSON.parse(await askText(path, request)) as Envelope<T, M>;
}

/** Grows with each change that was asked for here. */
export const changes = shared(0);

/**
 * Asks for a change. All that is shown is then read again, also where it was refused: something else may have come before.
 * @throws ApiError
 */
export async function send<T, M = AnyMeta>(
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
  const present = Object.entries(query).filter(
    ([, value]) => value !== undefined && value !== null && value !== "",
  );
  if (present.length === 0) return path;
  return `${path}?${new URLSearchParams(present.map(([name, value]) => [name, String(value)])).toString()}`;
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

/** Whether what is shown follows what happens, and since when. */
interface Live {
  readonly state: "live" | "paused" | "reconnecting";
  readonly since: Date;
}

const liveNow = (state: Live["state"]): Live => ({ state, since: new Date() });

export const live = shared(liveNow("live"));

export function toggleLive(): void {
  live.value = liveNow(live.value.state === "paused" ? "live" : "paused");
}

/** Whether the last request reached the server. A pause that a person asked for stays. */
function noteConnection(isThere: boolean): void {
  const { state } = live.value;
  const after = isThere ? "live" : "reconnecting";
  if (state !== "paused" && state !== after) live.value = liveNow(after);
}

export interface Resource<T, M = AnyMeta> {
  /** The last good answer, also while a newer one is under way. */
  readonly answer: Envelope<T, M> | undefined;
  /** Why there is no newer one. */
  readonly error: ApiError | undefined;
  /** Asks again now. */
  readonly reload: () => void;
}

const RETRY_MS = 2_000;

/**
 * What the API answers at a path, kept while the component is shown, and asked for again after each change made here.
 * @param path with its query; `undefined` asks nothing. Another path begins anew
 * @param options.everyMs how soon after an answer it asks again, while live and seen; never two at a time
 * @param options.isFixed whether nothing changes it, such as the payload of an event
 * @param options.read instead of JSON: takes the answer itself
 */
export function useResource<T, M = AnyMeta>(
  path: string | undefined,
  options: {
    readonly everyMs?: number | undefined;
    readonly isFixed?: boolean;
    readonly read?: (path: string, signal: AbortSignal) => Promise<Envelope<T, M>>;
  } = {},
): Resource<T, M> {
  const [state, setState] = useState<{
    path: string | undefined;
    answer?: Envelope<T, M>;
    error?: ApiError;
  }>({ path });
  const [round, setRound] = useState(0);
  const reload = useCallback(() => setRound((before) => before + 1), []);
  const read = useRef(options.read);
  read.current = options.read;
  const { isFixed = false, everyMs } = options;
  const changed = changes.use();

  useEffect(() => {
    if (path === undefined) return undefined;
    const controller = new AbortController();
    const { signal } = controller;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const again = (waitMs: number): void => {
      timer = setTimeout(() => {
        if (document.hidden || live.value.state === "paused") again(waitMs);
        else void load();
      }, waitMs);
    };
    const load = async (): Promise<void> => {
      try {
        const answer = await (read.current?.(path, signal) ?? askJson<T, M>(path, { signal }));
        if (signal.aborted) return;
        noteConnection(true);
        setState({ path, answer });
        if (everyMs !== undefined) again(everyMs);
      } catch (error) {
        if (signal.aborted) return;
        const failure = noted(error);
        setState((before) => ({ ...(before.path === path ? before : { path }), error: failure }));
        if (failure.status === 0 || failure.status === 503) again(RETRY_MS);
        else if (everyMs !== undefined) again(Math.max(everyMs, RETRY_MS));
      }
    };
    void load();
    return () => {
      controller.abort();
      clearTimeout(timer);
    };
  }, [path, round, everyMs, isFixed ? 0 : changed]);

  // Whoever ends a pause wants to see what is new at once.
  const { state: liveState } = live.use();
  const stateBefore = useRef(liveState);
  useEffect(() => {
    if (stateBefore.current === "paused" && liveState === "live" && everyMs !== undefined) reload();
    stateBefore.current = liveState;
  }, [liveState]);

  const current = state.path === path ? state : { path };
  return { answer: current.answer, error: current.error, reload };
}

/** A failure as an `ApiError`, with what it means for all of the page: signed out, or not connected. */
export function noted(error: unknown): ApiError {
  const failure = error instanceof ApiError ? error : new ApiError(0, String(error));
  if (failure.status === 0) noteConnection(false);
  if (failure.status === 401) {
    loseSession();
    identity.value = null;
  }
  return failure;
}
