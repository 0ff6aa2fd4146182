import type { Answer, Evreg } from "../evreg.ts";
import type { Health } from "../domain/health.ts";
import type { Identity } from "../domain/token.ts";
import { actionsOver } from "./actions.ts";
import { jsonAnswer, listAnswer } from "./answers.ts";
import { backupOver } from "./backup.ts";
import { createChannel } from "./channel.ts";
import { foreignAnswer } from "./refusals.ts";
import { checkTarget } from "./target.ts";
import { deliveriesOver } from "./deliveries.ts";
import { eventsOver } from "./events.ts";
import { replaysOver } from "./replays.ts";
import { subscriptionsOver } from "./subscriptions.ts";
import { tokensOver } from "./tokens.ts";

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
