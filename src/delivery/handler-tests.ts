import { type HandlerTest, TEST_HEADER } from "../domain/webhook.ts";
import { type Clock, type Random, toIso } from "../runtime/clock.ts";
import { CENSOR } from "../runtime/logger.ts";
import { Shares } from "../runtime/shares.ts";
import type { ClaimedSubscription } from "../store/queue.ts";
import type { SendResult } from "./exchange.ts";
import type { RequestBuilder, SignedRequest } from "./request.ts";
import { redact, secretsOf } from "./redaction.ts";
import { Sender, type SenderOptions } from "./sender.ts";

/** No event has this rowid. */
const NO_EVENT = 0;
/** Tests under way at a time, of all callers. */
const MAX_UNDER_WAY = 4;
/** So much is shown of a signature: enough to compare it, too little to send it with. */
const SHOWN_SIGNATURE = 8;

interface HandlerTestsOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly sender: Omit<SenderOptions, "maxPerOrigin">;
  readonly requests: RequestBuilder;
}

/** What is sent to which subscription. */
export interface HandlerTestRequest {
  readonly subscription: ClaimedSubscription;
  readonly action: string;
  readonly payload: Uint8Array;
  /** The same value for the same caller. */
  readonly caller: unknown;
  /** Ends it, as `interrupted`. */
  readonly signal?: AbortSignal | undefined;
}

export type HandlerTestResult = Omit<
  HandlerTest,
  "subscription_id" | "application" | "subscription" | "action"
>;

/** Sends single signed requests outside the queue, each over a connection of its own. */
export class HandlerTests {
  readonly #options: HandlerTestsOptions;
  readonly #senders = new Set<Sender>();
  readonly #places = new Shares(MAX_UNDER_WAY);

  constructor(options: HandlerTestsOptions) {
    this.#options = options;
  }

  /** @throws `rate_limited` or `unavailable` while too many are under way, see `Shares` */
  async send(request: HandlerTestRequest): Promise<HandlerTestResult> {
    this.#places.take(request.caller, "handler tests are under way");
    try {
      return await this.#test(request);
    } finally {
      this.#places.release(request.caller);
    }
  }

  async #test({ subscription, action, payload, signal }: HandlerTestRequest): Promise<HandlerTestResult> {
    const { clock, random, requests } = this.#options;
    const startedAtMs = clock.now();
    const startMs = clock.monotonicMs();
    const { settings, handler } = subscription;
    const event = { eventId: NO_EVENT, action, payload, timestampedMs: startedAtMs };
    // Receivers drop what has an id that they had before.
    const webhookId = `evt_test_${Buffer.from(random.bytes(8)).toString("hex")}`;
    const built = requests.build({ event, subscription, attempt: 1 }, startedAtMs, webhookId);
    const { headers, body }: SignedRequest =
      typeof built === "string" ? { headers: {}, body: Buffer.alloc(0) } : built;
    headers[TEST_HEADER] = "true";
    const timeoutMs = settings.timeout_ms ?? undefined;
    const sent: SendResult =
      typeof built === "string"
        ? { kind: "error", errorCode: built }
        : await this.#send({ url: handler, headers, body, timeoutMs }, signal);
    const durationMs = clock.monotonicMs() - startMs;
    const secrets = secretsOf(subscription);
    const clean = (text: string): string => redact(text, secrets);
    const { dnsMs = null, connectMs = null, firstByteMs = null } = sent.connection ?? {};
    const isAnswered = sent.kind === "answered";
    return {
      outcome: isAnswered && sent.statusCode >= 200 && sent.statusCode < 300 ? "delivered" : "failed",
      error_code: isAnswered ? null : sent.errorCode,
      tls_reason: isAnswered ? null : (sent.tlsReason ?? null),
      refusal: isAnswered || sent.refusal === undefined ? null : clean(sent.refusal),
      started_at: toIso(startedAtMs),
      duration_ms: durationMs,
      dns_ms: rounded(dnsMs),
      connect_ms: rounded(connectMs),
      first_byte_ms: rounded(firstByteMs),
      request: { method: "POST", url: handler, headers: masked(headers), body: body.toString("utf8") },
      response: isAnswered
        ? {
            status_code: sent.statusCode,
            headers: mapValues(sent.headers ?? {}, (value, name) => {
              return name === "set-cookie" ? CENSOR : clean(value);
            }),
            body: sent.response === undefined ? null : clean(sent.response),
          }
        : null,
    };
  }

  /** Ends those under way, as `interrupted`. */
  close(): void {
    for (const sender of this.#senders) sender.close();
  }

  async #send(
    request: {
      readonly url: string;
      readonly headers: Record<string, string>;
      readonly body: Buffer;
      readonly timeoutMs: number | undefined;
    },
    signal: AbortSignal | undefined,
  ): Promise<SendResult> {
    // Over a connection of the engine's some of the times would be missing, and it would be taken from the deliveries.
    const sender = new Sender({ ...this.#options.sender, maxPerOrigin: 1 });
    this.#senders.add(sender);
    const { timeoutMs, ...rest } = request;
    const whole = { ...rest, keepsHeaders: true, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
    const end = (): void => sender.close();
    try {
      return await new Promise((resolve) => {
        sender.send(whole, resolve);
        signal?.addEventListener("abort", end);
        if (signal?.aborted === true) end();
      });
    } finally {
      signal?.removeEventListener("abort", end);
      this.#senders.delete(sender);
      sender.close();
    }
  }
}

function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms);
}

function mapValues(
  values: Readonly<Record<string, string>>,
  change: (text: string, name: string) => string,
): Record<string, string> {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value, name)]));
}

const SIGNATURES = new Set(["X-Evreg-Signature", "webhook-signature"]);

function masked(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return mapValues(headers, (value, name) => {
    if (name === "Authorization") return `Bearer ${CENSOR}`;
    if (!SIGNATURES.has(name)) return value;
    return value.replaceAll(/([=,])([^ ]+)/g, (_, sign: string, signature: string) => {
      return `${sign}${signature.slice(0, SHOWN_SIGNATURE)}…`;
    });
  });
}
