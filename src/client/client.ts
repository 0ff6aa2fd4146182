import { createHash } from "node:crypto";
import { EvregError } from "../domain/error.ts";
import type { Backup } from "../domain/operations.ts";
import type { ActionsPort, Evreg, ReplaysPort, SubscriptionsPort } from "../evreg.ts";
import { jsonAnswer, listAnswer } from "./answers.ts";
import {
  type Channel,
  checkTarget,
  createChannel,
  foreignAnswer,
  type Opened,
  requestBody,
} from "./channel.ts";
import { encodeJson } from "../json/raw-json.ts";
import { eventsOver } from "./events.ts";
import { streamOver } from "./stream.ts";

export interface ConnectOptions {
  /** `http:` or `https:`, with a path where evreg stands behind a prefix. */
  readonly url: string;
  /** Sent in the `Authorization` header and nowhere else. */
  readonly token?: string;
  /** The time for one request, from its start to the last byte of its answer; 30 s by default. */
  readonly timeoutMs?: number;
  /** Lets the token travel over plain `http:` to another machine, where anyone between can read it. */
  readonly allowInsecureToken?: boolean;
  /** Largest answer to read; 256 MiB unless told. */
  readonly maxAnswerBytes?: number;
}

const TIMEOUT_MS = 30_000;
const MAX_ANSWER_BYTES = 256 * 1024 * 1024;

/**
 * All of evreg, done by the server at `url`. Nothing is sent before the first call. Besides what the port names, calls
 * fail with `unreachable`, whose message tells what to try.
 * `usage` for a URL or token that cannot be used.
 */
export function connect(options: ConnectOptions): Evreg {
  const { timeoutMs = TIMEOUT_MS, maxAnswerBytes = MAX_ANSWER_BYTES } = options;
  const channel = createChannel({ ...checkTarget(options), timeoutMs, maxAnswerBytes });
  const calls = callsOver(channel);
  const { record, list } = calls;
  return {
    actions: actionsOver(calls),
    events: eventsOver(channel),
    subscriptions: subscriptionsOver(calls),
    deliveries: {
      list: (query) => list("/v1/deliveries", query),
      get: (id) => record("GET", `/v1/deliveries/${id}`, "delivery"),
      retry: (id) => record("POST", `/v1/deliveries/${id}/retry`, "delivery"),
      skip: (id) => record("POST", `/v1/deliveries/${id}/skip`, "delivery"),
    },
    replays: replaysOver(calls),
    tokens: {
      list: () => list("/v1/tokens"),
      create: (input) => record("POST", "/v1/tokens", "token", { body: requestBody(input) }),
      revoke: (id) => record("DELETE", `/v1/tokens/${id}`, "token"),
      createCode: () => record("POST", "/v1/tokens/codes", "signInCode"),
      exchangeCode: (input) => record("POST", "/v1/tokens/exchange", "token", { body: requestBody(input) }),
    },
    audit: { list: (query) => list("/v1/audit", query) },
    // 503 is an answer here: it says what is wrong.
    health: () => record("GET", "/health", "health", { also: [503] }),
    stats: (query = {}) => record("GET", "/v1/stats", "stats", { query: { ...query } }),
    whoami: () => record("GET", "/v1/whoami", "identity"),
    async metrics() {
      const received = await channel.send("GET", "/metrics");
      const { bytes } = received;
      const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
      if (!/^evreg_/m.test(text)) throw foreignAnswer(received);
      return text;
    },
    stream: (query, opening) => streamOver(channel, query, opening),
    attention: (query) => list("/v1/attention", query),
    nodes: () => list("/v1/nodes"),
    doctor: () => list("/v1/doctor"),
    backup: (signal) => backupOver(channel, signal),
    close: () => channel.close(),
  };
}

/** What most calls are; the answer has the type of the port's promise. */
interface Calls {
  /** One record, told from another program's answer by its members. */
  readonly record: <A>(
    method: Parameters<Channel["send"]>[0],
    path: string,
    kind: Parameters<typeof jsonAnswer>[1],
    sent?: Parameters<Channel["send"]>[2],
  ) => Promise<A>;
  readonly list: <A>(path: string, query?: object) => Promise<A>;
  /** A list that answers a change. */
  readonly post: <A>(path: string, sent: Parameters<Channel["send"]>[2]) => Promise<A>;
}

function callsOver(channel: Channel): Calls {
  return {
    async record<A>(...[method, path, kind, sent]: Parameters<Calls["record"]>) {
      return jsonAnswer(await channel.send(method, path, sent), kind) as A;
    },
    async list<A>(path: string, query: object = {}) {
      return (await listAnswer(await channel.send("GET", path, { query: { ...query } }), channel)) as A;
    },
    async post<A>(path: string, sent: Parameters<Channel["send"]>[2]) {
      return (await listAnswer(await channel.send("POST", path, sent), channel)) as A;
    },
  };
}

const actionPath = (name: string) => `/v1/actions/${encodeURIComponent(name)}`;

function actionsOver({ record, list }: Calls): ActionsPort {
  return {
    list: (query) => list("/v1/actions", query),
    create: (input, signal) => record("POST", "/v1/actions", "action", { body: requestBody(input), signal }),
    get: (name) => record("GET", actionPath(name), "action"),
    update: (name, input, options = {}, signal) =>
      record("PUT", actionPath(name), "action", { body: requestBody(input), query: { ...options }, signal }),
    revisions: (name, query) => list(`${actionPath(name)}/revisions`, query),
    revision: (name, revision) => record("GET", `${actionPath(name)}/revisions/${revision}`, "revision"),
    check: (name, candidate, signal) =>
      record("POST", `${actionPath(name)}/check`, "verdict", { body: requestBody(candidate), signal }),
    validate: (name, payload, signal) =>
      record("POST", `${actionPath(name)}/validate`, "payloadVerdict", { body: payload.bytes, signal }),
    sample: (name, query = {}) =>
      record("GET", `${actionPath(name)}/sample`, "sample", { query: { ...query } }),
    types: (name) => record("GET", `${actionPath(name)}/types`, "types"),
  };
}

function subscriptionsOver({ record, list, post }: Calls): SubscriptionsPort {
  const path = "/v1/subscriptions";
  return {
    list: (query) => list(path, query),
    create: (input, signal) => record("POST", path, "subscription", { body: requestBody(input), signal }),
    get: (id) => record("GET", `${path}/${id}`, "subscription"),
    update: (id, input, signal) =>
      record("PUT", `${path}/${id}`, "subscription", { body: requestBody(input), signal }),
    rotateSecret: (id, input = {}) =>
      record("POST", `${path}/${id}/rotate-secret`, "subscription", { body: requestBody(input) }),
    test: (id, input, signal) =>
      record("POST", `${path}/${id}/test`, "handlerTest", { body: encodeJson(input), signal }),
    claim: (id, input = {}, signal) =>
      post(`${path}/${id}/claims`, { body: requestBody(input), signal, waitsMs: input.wait_ms }),
    finish: (id, input) => post(`${path}/${id}/finishes`, { body: requestBody(input) }),
    attempts: (id, query) => list(`${path}/${id}/attempts`, query),
    delete: (id) => record("DELETE", `${path}/${id}`, "subscription"),
  };
}

const startPath = (subscription: number) => `/v1/subscriptions/${subscription}/replay`;

function replaysOver({ record, list }: Calls): ReplaysPort {
  const path = "/v1/replays";
  return {
    count: (subscription, input) =>
      record("POST", startPath(subscription), "replayCount", {
        body: requestBody({ ...input, dry_run: true }),
      }),
    start: (subscription, input) =>
      record("POST", startPath(subscription), "replay", { body: requestBody(input) }),
    list: (query) => list(path, query),
    get: (id) => record("GET", `${path}/${id}`, "replay"),
    cancel: (id) => record("POST", `${path}/${id}/cancel`, "replay"),
  };
}

const DIGEST = /^sha-256=:([A-Za-z0-9+/]{43}=):$/;

/** A backup that the server makes, and that is read from it piece by piece; its content fails when it is not whole. */
async function backupOver(channel: Channel, signal?: AbortSignal): Promise<Backup> {
  const ending = new AbortController();
  const signals = [ending.signal, ...(signal === undefined ? [] : [signal])];
  const opened = await channel.open("/v1/backup", AbortSignal.any(signals));
  const { headers, body } = opened;
  const bytes = Number(headers["content-length"]);
  const digest = DIGEST.exec(String(headers["repr-digest"]))?.[1];
  if (digest === undefined || !Number.isSafeInteger(bytes)) {
    body.on("error", () => undefined).destroy();
    throw foreignAnswer({ ...opened, bytes: new Uint8Array() });
  }
  const sha256 = Buffer.from(digest, "base64").toString("hex");
  return {
    bytes,
    sha256,
    content: () => checked(opened, { bytes, sha256 }),
    close() {
      // What was not read is not wanted; its stream says so as an error.
      body.on("error", () => undefined);
      ending.abort();
      body.destroy();
      return Promise.resolve();
    },
  };
}

async function* checked(
  { body, target }: Opened,
  { bytes, sha256 }: { readonly bytes: number; readonly sha256: string },
): AsyncGenerator<Uint8Array> {
  const hash = createHash("sha256");
  let received = 0;
  try {
    for await (const piece of body as AsyncIterable<Uint8Array>) {
      hash.update(piece);
      received += piece.length;
      yield piece;
    }
  } catch (error) {
    if (error instanceof Error && error.name === "AbortError") throw error;
    const why = `the connection broke after ${received} of ${bytes} bytes, as when the server is stopped`;
    throw torn(why, target, error);
  }
  if (received !== bytes) throw torn(`${received} of ${bytes} bytes came`, target);
  if (hash.digest("hex") !== sha256) throw torn("its digest is not the one that the server named", target);
}

function torn(why: string, target: string, cause?: unknown): EvregError {
  return new EvregError(
    "unreachable",
    `The backup did not arrive whole, so there is none: ${why}. Run it again once the server answers (${target}).`,
    {},
    { cause },
  );
}
