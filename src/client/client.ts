import { createHash } from "node:crypto";
import type { Action, ActionRevision, SchemaVerdict, WarningMeta } from "../domain/action.ts";
import type { Delivery, DeliveryWithAttempts } from "../domain/delivery.ts";
import { EvregError } from "../domain/error.ts";
import type { Backup, Health } from "../domain/operations.ts";
import type { Replay, ReplayCount } from "../domain/replay.ts";
import type { CancelledMeta, Subscription, SubscriptionWithSecret } from "../domain/subscription.ts";
import type { Identity, Token, TokenWithSecret } from "../domain/token.ts";
import type {
  ActionsPort,
  Answer,
  DeliveriesPort,
  Evreg,
  ReplaysPort,
  SubscriptionsPort,
  TokensPort,
} from "../evreg.ts";
import { jsonAnswer, listAnswer } from "./answers.ts";
import {
  type Channel,
  checkTarget,
  createChannel,
  foreignAnswer,
  type Opened,
  type Received,
  requestBody,
} from "./channel.ts";
import { eventsOver } from "./events.ts";

export interface ConnectOptions {
  /** `http:` or `https:`, with a path where evreg stands behind a prefix. */
  readonly url: string;
  /** Sent in the `Authorization` header and nowhere else. */
  readonly token?: string;
  /** For one request, from its start to the last byte of its answer; 30 s unless told. */
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
  return {
    actions: actionsOver(channel),
    events: eventsOver(channel),
    subscriptions: subscriptionsOver(channel),
    deliveries: deliveriesOver(channel),
    replays: replaysOver(channel),
    tokens: tokensOver(channel),
    async health() {
      // 503 is an answer here: it says what is wrong.
      const response = await channel.send("GET", "/health", { also: [503] });
      return jsonAnswer(response, "health") as Answer<Health>;
    },
    async whoami() {
      return jsonAnswer(await channel.send("GET", "/v1/whoami"), "identity") as Answer<Identity>;
    },
    async metrics() {
      const received = await channel.send("GET", "/metrics");
      const { bytes } = received;
      const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
      if (!/^evreg_/m.test(text)) throw foreignAnswer(received);
      return text;
    },
    async doctor() {
      const received = await channel.send("GET", "/v1/doctor");
      return (await listAnswer(received, channel)) as Awaited<ReturnType<Evreg["doctor"]>>;
    },
    backup: (signal) => backupOver(channel, signal),
    close: () => channel.close(),
  };
}

function actionsOver(channel: Channel): ActionsPort {
  return {
    async list(query = {}) {
      const received = await channel.send("GET", "/v1/actions", { query: { ...query } });
      return (await listAnswer(received, channel)) as Answer<readonly Action[]>;
    },
    async create(input, signal) {
      const sent = { body: requestBody(input), signal };
      return jsonAnswer(await channel.send("POST", "/v1/actions", sent), "action") as Answer<
        Action,
        WarningMeta
      >;
    },
    async get(name) {
      return jsonAnswer(await channel.send("GET", pathOf(name)), "action") as Answer<Action>;
    },
    async update(name, input, options = {}, signal) {
      const sent = { body: requestBody(input), query: { ...options }, signal };
      return jsonAnswer(await channel.send("PUT", pathOf(name), sent), "action") as Answer<
        Action,
        WarningMeta
      >;
    },
    async revisions(name, query = {}) {
      const received = await channel.send("GET", `${pathOf(name)}/revisions`, { query: { ...query } });
      return (await listAnswer(received, channel)) as Answer<readonly ActionRevision[]>;
    },
    async revision(name, revision) {
      const path = `${pathOf(name)}/revisions/${revision}`;
      return jsonAnswer(await channel.send("GET", path), "revision") as Answer<ActionRevision>;
    },
    async check(name, candidate, signal) {
      const sent = { body: requestBody(candidate), signal };
      return jsonAnswer(
        await channel.send("POST", `${pathOf(name)}/check`, sent),
        "verdict",
      ) as Answer<SchemaVerdict>;
    },
  };
}

function pathOf(name: string): string {
  return `/v1/actions/${encodeURIComponent(name)}`;
}

const SUBSCRIPTIONS_PATH = "/v1/subscriptions";

function subscriptionsOver(channel: Channel): SubscriptionsPort {
  return {
    async list(query = {}) {
      const received = await channel.send("GET", SUBSCRIPTIONS_PATH, { query: { ...query } });
      return (await listAnswer(received, channel)) as Answer<readonly Subscription[]>;
    },
    async create(input, signal) {
      const received = await channel.send("POST", SUBSCRIPTIONS_PATH, { body: requestBody(input), signal });
      return jsonAnswer(received, "subscription") as Answer<SubscriptionWithSecret, WarningMeta>;
    },
    async get(id) {
      return jsonAnswer(
        await channel.send("GET", `${SUBSCRIPTIONS_PATH}/${id}`),
        "subscription",
      ) as Answer<Subscription>;
    },
    async update(id, input, signal) {
      const received = await channel.send("PUT", `${SUBSCRIPTIONS_PATH}/${id}`, {
        body: requestBody(input),
        signal,
      });
      return jsonAnswer(received, "subscription") as Answer<Subscription, WarningMeta>;
    },
    async rotateSecret(id, input = {}) {
      const received = await channel.send("POST", `${SUBSCRIPTIONS_PATH}/${id}/rotate-secret`, {
        body: requestBody(input),
      });
      return jsonAnswer(received, "subscription") as Answer<SubscriptionWithSecret>;
    },
    async delete(id) {
      const received = await channel.send("DELETE", `${SUBSCRIPTIONS_PATH}/${id}`);
      return jsonAnswer(received, "subscription") as Answer<Subscription, CancelledMeta>;
    },
  };
}

const DELIVERIES_PATH = "/v1/deliveries";

function deliveriesOver(channel: Channel): DeliveriesPort {
  return {
    async list(query = {}) {
      const received = await channel.send("GET", DELIVERIES_PATH, { query: { ...query } });
      return (await listAnswer(received, channel)) as Answer<readonly Delivery[]>;
    },
    async get(id) {
      return jsonAnswer(
        await channel.send("GET", `${DELIVERIES_PATH}/${id}`),
        "delivery",
      ) as Answer<DeliveryWithAttempts>;
    },
    async retry(id) {
      return jsonAnswer(
        await channel.send("POST", `${DELIVERIES_PATH}/${id}/retry`),
        "delivery",
      ) as Answer<Delivery>;
    },
    async skip(id) {
      return jsonAnswer(
        await channel.send("POST", `${DELIVERIES_PATH}/${id}/skip`),
        "delivery",
      ) as Answer<Delivery>;
    },
  };
}

const REPLAYS_PATH = "/v1/replays";

function replaysOver(channel: Channel): ReplaysPort {
  const replay = (subscription: number, body: string): Promise<Received> =>
    channel.send("POST", `/v1/subscriptions/${subscription}/replay`, { body });

  return {
    async count(subscription, input) {
      const received = await replay(subscription, requestBody({ ...input, dry_run: true }));
      return jsonAnswer(received, "replayCount") as Answer<ReplayCount>;
    },
    async start(subscription, input) {
      return jsonAnswer(await replay(subscription, requestBody(input)), "replay") as Answer<Replay>;
    },
    async list(query = {}) {
      const received = await channel.send("GET", REPLAYS_PATH, { query: { ...query } });
      return (await listAnswer(received, channel)) as Answer<readonly Replay[]>;
    },
    async get(id) {
      return jsonAnswer(await channel.send("GET", `${REPLAYS_PATH}/${id}`), "replay") as Answer<Replay>;
    },
    async cancel(id) {
      return jsonAnswer(
        await channel.send("POST", `${REPLAYS_PATH}/${id}/cancel`),
        "replay",
      ) as Answer<Replay>;
    },
  };
}

const TOKENS_PATH = "/v1/tokens";

function tokensOver(channel: Channel): TokensPort {
  return {
    async list() {
      return (await listAnswer(await channel.send("GET", TOKENS_PATH), channel)) as Answer<readonly Token[]>;
    },
    async create(input) {
      return jsonAnswer(
        await channel.send("POST", TOKENS_PATH, { body: requestBody(input) }),
        "token",
      ) as Answer<TokenWithSecret>;
    },
    async revoke(id) {
      return jsonAnswer(await channel.send("DELETE", `${TOKENS_PATH}/${id}`), "token") as Answer<Token>;
    },
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
  { body, asked }: Opened,
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
    throw torn(why, asked, error);
  }
  if (received !== bytes) throw torn(`${received} of ${bytes} bytes came`, asked);
  if (hash.digest("hex") !== sha256) throw torn("its digest is not the one that the server named", asked);
}

function torn(why: string, asked: string, cause?: unknown): EvregError {
  return new EvregError(
    "unreachable",
    `The backup did not arrive whole, so there is none: ${why}. Run it again once the server answers (${asked}).`,
    {},
    { cause },
  );
}
