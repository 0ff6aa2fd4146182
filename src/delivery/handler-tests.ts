import type { IncomingHttpHeaders } from "node:http";
import { type HandlerTest, TEST_HEADER } from "../domain/webhook.ts";
import { toIso } from "../runtime/clock.ts";
import { CENSOR } from "../runtime/logger.ts";
import { Shares } from "../runtime/shares.ts";
import type { ClaimedSubscription } from "../store/queue.ts";
import { buildRequest, endingOf } from "./attempt.ts";
import type { SendResult } from "./exchange.ts";
import type { EngineParts } from "./parts.ts";
import { redact } from "./redaction.ts";
import type { Sender } from "./sender.ts";

/** No event has this rowid. */
const NO_EVENT = 0;
/** Tests under way at a time, of all callers. */
const MAX_TESTS = 4;
/** Its beginning is shown: enough to compare it, too little to send it with. */
const SIGNATURE = /(?<=sha256=|v1,)(.{8})[^ ]*/g;

interface HandlerTestParts extends Pick<EngineParts, "clock" | "random" | "version"> {
  readonly sender: Pick<Sender, "send">;
}

/** What is sent to which subscription. */
interface HandlerTestRequest {
  readonly subscription: ClaimedSubscription;
  readonly action: string;
  readonly payload: Uint8Array;
  /** Each caller has one value here. */
  readonly caller: unknown;
}

/** Sends single signed requests outside the queue, each over a connection of its own. */
export class HandlerTests {
  readonly #parts: HandlerTestParts;
  readonly #places = new Shares(MAX_TESTS);

  constructor(parts: HandlerTestParts) {
    this.#parts = parts;
  }

  /** @throws `rate_limited` or `unavailable` while too many are under way, see `Shares` */
  async send(request: HandlerTestRequest): Promise<HandlerTest> {
    this.#places.take(request.caller, "handler tests are under way");
    try {
      return await this.#test(request);
    } finally {
      this.#places.release(request.caller);
    }
  }

  async #test({ subscription, action, payload }: HandlerTestRequest): Promise<HandlerTest> {
    const { clock, random, version, sender } = this.#parts;
    const startedAtMs = clock.now();
    const startMs = clock.monotonicMs();
    const { subscriptionId, application, name, settings, handler } = subscription;
    const event = { eventId: NO_EVENT, action, payload, timestampedMs: startedAtMs };
    // Receivers drop what has an id that they had before.
    const webhookId = `evt_test_${Buffer.from(random.bytes(8)).toString("hex")}`;
    const built = buildRequest(version, { event, subscription, attempt: 1 }, startedAtMs, webhookId);
    const { headers, body } = typeof built === "string" ? { headers: {}, body: Buffer.alloc(0) } : built;
    const sentHeaders = { ...headers, [TEST_HEADER]: "true" };
    // A connection of the deliveries would lack some of the times, and would be taken from them.
    const request = {
      url: handler,
      headers: sentHeaders,
      body,
      timeoutMs: settings.timeout_ms,
      isAlone: true,
    };
    const sent = await new Promise<SendResult>((resolve) => {
      if (typeof built === "string") resolve({ errorCode: built });
      else sender.send(request, resolve);
    });
    const durationMs = clock.monotonicMs() - startMs;
    const clean = (text: string): string => redact(text, subscription);
    const { dnsMs = null, connectMs = null, firstByteMs = null } = sent.connection ?? {};
    const { statusCode = 0, errorCode = null, tlsReason = null, refusal, response } = sent;
    return {
      subscription_id: subscriptionId,
      application,
      subscription: name,
      action,
      outcome: endingOf(sent) === "delivered" ? "delivered" : "failed",
      error_code: errorCode,
      tls_reason: tlsReason,
      refusal: refusal === undefined ? null : clean(refusal),
      started_at: toIso(startedAtMs),
      duration_ms: durationMs,
      dns_ms: rounded(dnsMs),
      connect_ms: rounded(connectMs),
      first_byte_ms: rounded(firstByteMs),
      request: { method: "POST", url: handler, headers: masked(sentHeaders), body: body.toString("utf8") },
      response:
        errorCode !== null
          ? null
          : {
              status_code: statusCode,
              headers: mapValues(sent.headers ?? {}, (value, header) => {
                return header === "set-cookie" ? CENSOR : clean(value);
              }),
              body: response === undefined ? null : clean(response),
            },
    };
  }
}

function rounded(ms: number | null): number | null {
  return ms === null ? null : Math.round(ms);
}

function mapValues(
  headers: IncomingHttpHeaders,
  change: (text: string, name: string) => string,
): Record<string, string> {
  const texts = Object.entries(headers).map(([name, value]) => [name, [value].flat().join(", ")] as const);
  return Object.fromEntries(texts.map(([name, text]) => [name, change(text, name)]));
}

function masked(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return mapValues(headers, (value, name) => {
    return name === "Authorization" ? `Bearer ${CENSOR}` : value.replaceAll(SIGNATURE, "$1…");
  });
}
