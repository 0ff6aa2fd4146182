import type { Readable } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { Agent, request } from "undici";
import { codeOfStatus, type ErrorBody, EvregError, messageOf } from "../domain/error.ts";
import { BEARER_TOKEN, withoutUserInfo } from "../domain/formats.ts";
import { retryAfterMs } from "../domain/retry.ts";
import { networkErrorCode } from "../domain/network-error.ts";

/** Requests under way at once; more wait for one of these. */
const CONNECTIONS = 32;

/** How long the head of an answer may take that is made while it is waited for. */
const LONG_ANSWER_MS = 60 * 60_000;
/** The longest time between two pieces of it. */
const SILENCE_MS = 5 * 60_000;

export type HttpMethod = "GET" | "POST" | "PUT" | "DELETE";

interface Sent {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: string | Uint8Array;
  /** Statuses that are answers here although they tell of a failure. */
  readonly also?: readonly number[] | undefined;
  /** Ends it; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
  /** How much longer than others it may take, as the server waits for something. */
  readonly waitsMs?: number | undefined;
}

interface OpenedBy extends Pick<Sent, "query"> {
  readonly headers?: Readonly<Record<string, string>>;
  readonly silenceMs?: number;
}

export interface Received {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly bytes: Uint8Array;
  /** Messages name it: what was asked of whom. */
  readonly target: string;
}

/** An answer whose body is read as it comes. */
export interface Opened extends Omit<Received, "bytes"> {
  readonly body: Readable;
}

/** One server and the connections to it. */
export interface Channel {
  /**
   * Answers a success, or a status in `also`. Throws the server's own refusal as the `EvregError` it was there, and
   * `unreachable` when no evreg answered.
   */
  send(method: HttpMethod, path: string, sent?: Sent): Promise<Received>;
  /**
   * Asks for an answer of any length that may be long in coming.
   * @param signal ends it
   * @param more `silenceMs`: the longest time between two pieces
   */
  open(path: string, signal: AbortSignal, more?: OpenedBy): Promise<Opened>;
  close(): Promise<void>;
}

interface ChannelOptions extends ServerAddress {
  readonly timeoutMs: number;
  readonly maxAnswerBytes: number;
}

/** A server closes connections that are idle for long, mostly after seconds. */
const IDLE_MS = 100;

/**
 * A caller that was busy for long has not heard of connections that the server closed meanwhile, and what is sent on one of
 * those fails. The second turn of the event loop has looked at all of them.
 */
async function closedAreNoticed(): Promise<void> {
  await nextTurn();
  await nextTurn();
}

export function createChannel(options: ChannelOptions): Channel {
  const { origin, basePath, token, timeoutMs, maxAnswerBytes } = options;
  const agent = new Agent({
    connections: CONNECTIONS,
    maxResponseSize: maxAnswerBytes,
    // One deadline rules a whole request, see `signal` below.
    headersTimeout: 0,
    bodyTimeout: 0,
    connect: { timeout: timeoutMs },
  });
  const longAgent = new Agent({
    headersTimeout: LONG_ANSWER_MS,
    bodyTimeout: SILENCE_MS,
    connect: { timeout: timeoutMs },
  });
  const common: Record<string, string> = { accept: "application/json", "user-agent": "evreg" };
  if (token !== undefined) common["authorization"] = `Bearer ${token}`;
  const withBody = { ...common, "content-type": "application/json" };
  let closed: Promise<void> | undefined;
  let usedMs = performance.now();

  return {
    async send(method, path, { query, body, also = [], signal, waitsMs = 0 } = {}) {
      const target = `${method} ${origin}${basePath}${path}`;
      let received: Received;
      const deadline = AbortSignal.timeout(timeoutMs + waitsMs);
      if (performance.now() - usedMs > IDLE_MS) await closedAreNoticed();
      try {
        const response = await request(`${origin}${basePath}${path}${queryString(query)}`, {
          method,
          dispatcher: agent,
          headers: body === undefined ? common : withBody,
          body: body ?? null,
          signal: signal === undefined ? deadline : AbortSignal.any([deadline, signal]),
        });
        const { statusCode: status } = response;
        received = { status, headers: response.headers, bytes: await response.body.bytes(), target };
      } catch (error) {
        signal?.throwIfAborted();
        throw unreachable(error, { ...options, method });
      } finally {
        usedMs = performance.now();
      }
      const { status } = received;
      if ((status >= 200 && status < 300) || also.includes(status)) return received;
      throw failureOf(received);
    },
    async open(path, signal, { query, headers: more = {}, silenceMs } = {}) {
      const url = `${origin}${basePath}${path}`;
      const target = `GET ${url}`;
      let refused: Received;
      try {
        const response = await request(`${url}${queryString(query)}`, {
          dispatcher: longAgent,
          headers: { ...common, ...more },
          ...(silenceMs === undefined ? {} : { headersTimeout: silenceMs, bodyTimeout: silenceMs }),
          signal,
        });
        const { statusCode: status, headers, body } = response;
        if (status === 200) return { status, headers, body, target };
        refused = { status, headers, bytes: await body.bytes(), target };
      } catch (error) {
        throw unreachable(error, { ...options, method: "GET", timeoutMs: LONG_ANSWER_MS });
      }
      throw failureOf(refused);
    },
    close: () => (closed ??= Promise.all([agent.close(), longAgent.destroy()]).then(() => undefined)),
  };
}

function queryString(query: Sent["query"] = {}): string {
  const parts: string[] = [];
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parts.push(`${name}=${encodeURIComponent(value)}`);
  }
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

interface ServerAddress {
  readonly origin: string;
  /** The path before `/v1`; empty or `/prefix`. */
  readonly basePath: string;
  readonly token: string | undefined;
}

const LOOPBACK = /^(?:(?:[\w-]+\.)*localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i;

/** `usage` for an address or a token that cannot be used, or would not be safe to use. */
export function checkTarget(options: {
  readonly url: string;
  readonly token?: string;
  readonly allowInsecureToken?: boolean;
}): ServerAddress {
  const { token, allowInsecureToken = false } = options;
  const url = parseUrl(options.url);
  const isExposed = url.protocol === "http:" && !LOOPBACK.test(url.hostname) && !allowInsecureToken;
  if (token !== undefined && !BEARER_TOKEN.test(token)) {
    const why = "The token has characters that no token has; was more than the token copied?";
    throw new EvregError("usage", why);
  }
  if (token !== undefined && isExposed) {
    throw new EvregError(
      "usage",
      `The token would cross the network unencrypted to ${url.origin}. Use an https: address, or allow it inside a network you trust (allowInsecureToken).`,
      { url: url.origin, option: "allowInsecureToken" },
    );
  }
  return { origin: url.origin, basePath: url.pathname.replace(/\/+$/, ""), token };
}

function parseUrl(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || (url.protocol !== "http:" && url.protocol !== "https:")) {
    // The address is not shown as given: it may hold a password.
    throw new EvregError("usage", "The address of the server must be a URL such as http://127.0.0.1:7480.");
  }
  if (text.includes("@") || url.search !== "" || url.hash !== "") {
    throw new EvregError(
      "usage",
      `The address of the server must have no user, password, query or fragment: ${withoutUserInfo(url.origin + url.pathname)}.`,
    );
  }
  return url;
}

/** The failure another evreg answered, as the error it was there; `undefined` when the answer is not in its shape. */
export function refusal({ status, bytes, headers }: Received): EvregError | undefined {
  const { error, details, code } = Object(parse(bytes)) as Partial<ErrorBody>;
  const isRefusal = typeof error === "string" && typeof details === "object" && code === status;
  if (!isRefusal || details === null) return undefined;
  return withRetryAfter(new EvregError(codeOfStatus(status), error, details), headers);
}

function withRetryAfter(error: EvregError, headers: Received["headers"]): EvregError {
  const value = headers["retry-after"];
  const waitMs = typeof value === "string" ? retryAfterMs(value, Date.now()) : undefined;
  if (waitMs !== undefined) error.retryAfterMs = waitMs;
  return error;
}

function failureOf(received: Received): EvregError {
  return refusal(received) ?? foreignAnswer(received);
}

/** Something answered, but not evreg: a proxy, another program, a login page. */
export function foreignAnswer({ status, headers, target }: Received): EvregError {
  const { location, "content-type": type } = headers;
  const as = typeof type === "string" ? ` and ${type.slice(0, 100)}` : "";
  const why =
    status >= 300 && status < 400 && typeof location === "string"
      ? `was redirected (HTTP ${status}) to ${location.slice(0, 200)}. Redirects are not followed: give that address instead.`
      : `was answered with HTTP ${status}${as}, but not as evreg answers. Is the address that of an evreg server?`;
  return withRetryAfter(new EvregError("unreachable", `${target} ${why}`, { status }), headers);
}

function parse(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    return undefined;
  }
}

interface Attempted extends ChannelOptions {
  readonly method: string;
}

/**
 * What a failed exchange means to the one who asked for it, be it a program or a person: the command line adds its own
 * words to it.
 */
function unreachable(error: unknown, attempted: Attempted): EvregError {
  if (error instanceof EvregError) return error;
  const code = codeOf(error);
  const cause = code === undefined ? {} : { cause: code };
  const details = { url: attempted.origin, ...cause };
  return new EvregError("unreachable", explain(error, code, attempted), details, { cause: error });
}

function explain(error: unknown, code: string | undefined, attempted: Attempted): string {
  const { origin, timeoutMs, maxAnswerBytes } = attempted;
  const noWay = `There is no way from here to ${origin}. Check the network.`;
  const closed = "This connection to the server was closed before.";
  const plain = origin.replace(/^https:/, "http:");
  // OpenSSL reads the text of a plain HTTP answer as a record's header.
  const noTls = `What listens at ${origin} does not speak https; evreg speaks it only where it was set up to. Try ${plain}, or name the proxy that speaks https for it.`;
  const byCode: Readonly<Record<string, string>> = {
    EHOSTUNREACH: noWay,
    ENETUNREACH: noWay,
    UND_ERR_RES_EXCEEDED_MAX_SIZE: `The answer of ${origin} is larger than ${maxAnswerBytes} bytes. Ask for fewer records at once.`,
    UND_ERR_DESTROYED: closed,
    UND_ERR_CLOSED: closed,
    ERR_SSL_WRONG_VERSION_NUMBER: noTls,
    ERR_SSL_PACKET_LENGTH_TOO_LONG: noTls,
  };
  const byKind: Readonly<Record<ReturnType<typeof networkErrorCode>, string>> = {
    connection_refused: `Nothing listens at ${origin}. Is a server running there?`,
    dns_failed: `The name in ${origin} has no address. Is it spelt right?`,
    timeout: `${origin} did not answer within ${timeoutMs / 1_000} s.${doubt(attempted)}`,
    connection_reset: `The connection to ${origin} broke before the answer came.${doubt(attempted)}`,
    tls_failed: `The certificate of ${origin} is not trusted (${code}). Use the address it is made out for; where an authority of your own signed it, name its certificate in NODE_EXTRA_CA_CERTS.`,
    protocol_error: `${origin} does not answer in HTTP. Is the address that of an evreg server?`,
    network_error: `${origin} could not be asked: ${messageOf(error)}. Check the address.`,
  };
  return byCode[code ?? ""] ?? byKind[networkErrorCode(error)];
}

/** After a broken exchange nobody here knows whether the server had done it. */
function doubt({ method }: Attempted): string {
  return method === "GET" ? "" : " It may have been done all the same: look before asking again.";
}

function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as NodeJS.ErrnoException;
  if (typeof code === "string") return code;
  return error.name === "TimeoutError" ? error.name : undefined;
}
