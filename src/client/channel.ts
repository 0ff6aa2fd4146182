import { setImmediate as nextTurn } from "node:timers/promises";
import type { Readable } from "node:stream";
import { Agent, request } from "undici";
import { foreignAnswer, refusal, withAdvice } from "./refusals.ts";
import type { Target } from "./target.ts";
import { unreachable } from "./unreachable.ts";

/** Requests under way at once; more wait for one of these. */
const CONNECTIONS = 32;

/** For the head of an answer that is made while it is waited for. */
const LONG_ANSWER_MS = 60 * 60_000;
/** Between two pieces of it. */
const SILENCE_MS = 5 * 60_000;

interface Sent {
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  readonly body?: string | Uint8Array;
  /** What is asked of the answer beside its being right (RFC 7240). */
  readonly prefer?: "return=minimal" | undefined;
  /** Statuses that are answers here although they tell of a failure. */
  readonly also?: readonly number[];
  /** Ends it; it then rejects with the signal's reason. */
  readonly signal?: AbortSignal | undefined;
}

/** An answer whose body is read as it comes. */
export interface Opened {
  readonly status: number;
  readonly headers: Received["headers"];
  readonly body: Readable;
  readonly asked: string;
}

export interface Received {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly bytes: Uint8Array;
  /** For messages: what was asked of whom. */
  readonly asked: string;
}

/** One server and the connections to it. */
export interface Channel {
  /**
   * Answers a success, or a status in `also`. Throws the server's own refusal as the `EvregError` it was there, and
   * `unreachable` when no evreg answered.
   */
  send(method: "GET" | "POST" | "PUT" | "DELETE", path: string, sent?: Sent): Promise<Received>;
  /**
   * The same for an answer of any length that may be long in coming.
   * @param signal ends it
   */
  open(path: string, signal: AbortSignal): Promise<Opened>;
  /** Throws `unreachable` unless it is an evreg that answered so. */
  mustBeEvreg(received: Received): Promise<void>;
  close(): Promise<void>;
}

export interface ChannelOptions extends Target {
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
  const common: Record<string, string> = { accept: "application/json", "user-agent": "evreg" };
  if (token !== undefined) common["authorization"] = `Bearer ${token}`;
  const withBody = { ...common, "content-type": "application/json" };
  let closed: Promise<void> | undefined;
  let usedMs = performance.now();
  let isEvreg = false;
  let longAgent: Agent | undefined;

  const channel: Channel = {
    async send(method, path, { query, body, prefer, also = [], signal } = {}) {
      const asked = `${method} ${origin}${basePath}${path}`;
      let received: Received;
      const deadline = AbortSignal.timeout(timeoutMs);
      const headers = body === undefined ? common : withBody;
      if (performance.now() - usedMs > IDLE_MS) await closedAreNoticed();
      try {
        const response = await request(`${origin}${basePath}${path}${queryString(query)}`, {
          method,
          dispatcher: agent,
          headers: prefer === undefined ? headers : { ...headers, prefer },
          body: body ?? null,
          signal: signal === undefined ? deadline : AbortSignal.any([deadline, signal]),
        });
        const { statusCode: status } = response;
        received = { status, headers: response.headers, bytes: await response.body.bytes(), asked };
      } catch (error) {
        signal?.throwIfAborted();
        throw unreachable(error, { origin, method, timeoutMs, maxAnswerBytes });
      } finally {
        usedMs = performance.now();
      }
      const { status } = received;
      if ((status >= 200 && status < 300) || also.includes(status)) return received;
      const refused = refusal(received);
      throw refused === undefined ? foreignAnswer(received) : withAdvice(refused, options, path);
    },
    async open(path, signal) {
      longAgent ??= new Agent({
        connections: CONNECTIONS,
        headersTimeout: LONG_ANSWER_MS,
        bodyTimeout: SILENCE_MS,
        connect: { timeout: timeoutMs },
      });
      const url = `${origin}${basePath}${path}`;
      const asked = `GET ${url}`;
      let refused: Received;
      try {
        const response = await request(url, { dispatcher: longAgent, headers: common, signal });
        const { statusCode: status, headers, body } = response;
        if (status === 200) return { status, headers, body, asked };
        refused = { status, headers, bytes: await body.bytes(), asked };
      } catch (error) {
        throw unreachable(error, { origin, method: "GET", timeoutMs: LONG_ANSWER_MS, maxAnswerBytes });
      }
      const failure = refusal(refused);
      throw failure === undefined ? foreignAnswer(refused) : withAdvice(failure, options, path);
    },
    async mustBeEvreg(received) {
      isEvreg ||= tellsData(await channel.send("GET", "/v1/whoami"));
      if (!isEvreg) throw foreignAnswer(received);
    },
    close: () => (closed ??= Promise.all([agent.close(), longAgent?.destroy()]).then(() => undefined)),
  };
  return channel;
}

/** As evreg does: the route stands beside the others, whatever a proxy in front lets through. */
function tellsData({ bytes }: Received): boolean {
  try {
    const { data } = JSON.parse(Buffer.from(bytes).toString("utf8")) as { data?: { data_id?: unknown } };
    return typeof data?.data_id === "string";
  } catch {
    return false;
  }
}

function queryString(query: Sent["query"] = {}): string {
  const parts: string[] = [];
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) parts.push(`${name}=${encodeURIComponent(value)}`);
  }
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

/** `undefined` cannot be written as JSON; as `null` it is refused like any other body that is no object. */
export function requestBody(input: unknown): string {
  return JSON.stringify(input) ?? "null";
}
