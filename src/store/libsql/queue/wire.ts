import { LRUCache } from "lru-cache";
import { NO_SETTINGS, type SubscriptionSettings } from "../../../domain/subscription-settings.ts";
import type {
  AttemptResult,
  Claim,
  ClaimAnswer,
  ClaimedEvent,
  ClaimedSubscription,
  ClaimQuota,
  ClaimRequest,
  ConsumerRequest,
  FinishOptions,
  PullConsumer,
} from "../../queue.ts";
import { type AttemptFacts, dependsOnSettings } from "../../rules/finish.ts";
import { OpenedSecrets, type StoredSecrets } from "../../secret-cipher.ts";
import type { RecordedLeases } from "../events/record-wire.ts";
import { columns } from "../thread/columns.ts";
import { bytesAt, type ByteWriter } from "../thread/protocol.ts";
import { parseStored } from "../thread/stored-json.ts";

/** A request as it crosses the thread. */
export interface ClaimCall extends Omit<ClaimRequest, "quotas"> {
  /** `QuotaRow`s as JSON, which is cheaper to carry than as many objects. */
  readonly quotas: string;
}

/** The same of consumers. */
export interface ConsumerCall extends Omit<ConsumerRequest, "consumers"> {
  readonly consumers: readonly (readonly [subscriptionId: number, consumer: PullConsumer])[];
}

export type QuotaRow = readonly [subscriptionId: number, quota: ClaimQuota];

/** The claim of one consumer. */
export type ConsumerClaim = readonly [subscriptionId: number, claimId: number];

/** An answer as it crosses the thread. */
export interface ClaimReply extends Omit<ClaimAnswer, "claims"> {
  /** Of what evreg sends. */
  readonly claimId: number;
  /** The claim that each consumer has. */
  readonly consumers: readonly ConsumerClaim[];
  /** `ClaimRow`s. */
  readonly rows: string;
  /** `SubscriptionRow`s. */
  readonly subscriptions: string;
  /** Where their payloads begin in the answer's bytes, each event's once, in the order of the rows. */
  readonly offset: number;
  /** Events of the rows whose payloads are damaged, and not among the bytes. */
  readonly damaged: readonly number[];
}

export const CLAIM = columns(
  "deliveryId",
  "attempt",
  "failures",
  "subscriptionId",
  "eventId",
  "payloadBytes",
  "timestampedMs",
  "action",
  "isFromReplay",
);
export type ClaimRow = [
  deliveryId: number,
  attempt: number,
  failures: number,
  subscriptionId: number,
  eventId: number,
  payloadBytes: number,
  timestampedMs: number,
  action: string,
  isFromReplay: 0 | 1,
];

export const SUBSCRIPTION = columns(
  "subscriptionId",
  "application",
  "name",
  "handler",
  "maxRetries",
  "secret",
  "previousSecret",
  "previousUntilMs",
  "bearer",
  "bearerToken",
  "settings",
);
type SubscriptionRow = readonly [
  subscriptionId: number,
  application: string,
  name: string,
  handler: string,
  maxRetries: number,
  secret: StoredSecrets["secret"],
  previousSecret: StoredSecrets["previousSecret"],
  previousUntilMs: StoredSecrets["previousUntilMs"],
  bearer: StoredSecrets["bearer"],
  bearerToken: StoredSecrets["bearerToken"],
  settings: string | null,
];

export function claimCall(request: ClaimRequest): ClaimCall {
  return { ...request, quotas: JSON.stringify([...request.quotas]) };
}

export function consumerCall(request: ConsumerRequest): ConsumerCall {
  return { ...request, consumers: [...request.consumers] };
}

/** Reads the subscriptions of claims. The last ones are retained, as many claims are for the same. */
export class ClaimedSubscriptions {
  readonly #secrets: OpenedSecrets;
  #lastRows = "[]";
  #last: ReadonlyMap<number, ClaimedSubscription> = new Map();

  constructor(key: Uint8Array | undefined) {
    this.#secrets = new OpenedSecrets(key);
  }

  /** @param rows `SubscriptionRow`s as JSON */
  read(rows: string): ReadonlyMap<number, ClaimedSubscription> {
    if (rows === this.#lastRows) return this.#last;
    this.#lastRows = rows;
    const all = (JSON.parse(rows) as SubscriptionRow[]).map((row) => this.#subscription(row));
    this.#last = new Map(all.map((one) => [one.subscriptionId, one]));
    return this.#last;
  }

  #subscription(row: SubscriptionRow): ClaimedSubscription {
    const { at } = SUBSCRIPTION;
    const application = row[at.application];
    const name = row[at.name];
    return {
      subscriptionId: row[at.subscriptionId],
      application,
      name,
      handler: row[at.handler],
      maxRetries: row[at.maxRetries],
      ...this.#secrets.of(
        { application, subscription: name },
        {
          secret: row[at.secret],
          previousSecret: row[at.previousSecret],
          previousUntilMs: row[at.previousUntilMs],
          bearer: row[at.bearer],
          bearerToken: row[at.bearerToken],
        },
      ),
      settings: settingsFromJson(row[at.settings]),
    };
  }
}

/** The claims of a delivery's first attempt that were made with its event. */
export function recordedClaims(
  { claimId, subscriptions, deliveries }: RecordedLeases,
  event: ClaimedEvent,
  subscriptionsOf: ClaimedSubscriptions,
): readonly Claim[] {
  const byId = subscriptionsOf.read(subscriptions);
  return deliveries.map(([deliveryId, subscriptionId]) => {
    return { deliveryId, claimId, attempt: 1, failures: 0, event, subscription: byId.get(subscriptionId)! };
  });
}

export function claimAnswer(
  reply: ClaimReply,
  bytes: ArrayBuffer | undefined,
  subscriptionsOf: ClaimedSubscriptions,
): ClaimAnswer {
  const { claimId, nextDueAtMs, limitedTiers } = reply;
  const consumers = new Map(reply.consumers);
  const subscriptions = subscriptionsOf.read(reply.subscriptions);
  const events = new Map<number, ClaimedEvent>();
  const damaged = new Set(reply.damaged);
  let { offset } = reply;
  const claims = (JSON.parse(reply.rows) as ClaimRow[]).map((row): Claim => {
    const { at } = CLAIM;
    const eventId = row[at.eventId];
    let event = events.get(eventId);
    if (event === undefined) {
      const isDamaged = damaged.has(eventId);
      const payloadBytes = row[at.payloadBytes];
      const payload = isDamaged ? undefined : bytesAt(bytes, [offset, payloadBytes]);
      event = { eventId, action: row[at.action], payload, timestampedMs: row[at.timestampedMs] };
      events.set(eventId, event);
      if (!isDamaged) offset += payloadBytes;
    }
    // Every delivery has its subscription, which is never removed.
    return {
      deliveryId: row[at.deliveryId],
      claimId: consumers.get(row[at.subscriptionId]) ?? claimId,
      attempt: row[at.attempt],
      failures: row[at.failures],
      isFromReplay: row[at.isFromReplay] === 1,
      event,
      subscription: subscriptions.get(row[at.subscriptionId])!,
    };
  });
  return { claims, nextDueAtMs, limitedTiers };
}

/** A result to be stored. */
export interface FinishedRow
  extends AttemptFacts, Pick<AttemptResult, "deliveryId" | "claimId" | "startedAtMs" | "durationMs"> {
  /** `null` where it is of no interest. */
  readonly latencyMs: number | null;
  /** `null` where there is no text. */
  readonly textBytes: number | null;
  /** Where its text lies in the batch's bytes. */
  readonly textOffset: number;
  readonly connection?: AttemptResult["connection"] | undefined;
  readonly nowMs: number;
  /** Left out where they do not matter, as for nearly all results. */
  readonly options?: FinishOptions | undefined;
}

const encoder = new TextEncoder();

/** @param bytes takes the answer's text, or why the address was refused or TLS failed, if there is any */
export function finishedRow(
  result: AttemptResult,
  nowMs: number,
  options: FinishOptions,
  bytes: ByteWriter,
): FinishedRow {
  const {
    response,
    tlsReason,
    refusal,
    latencyMs = null,
    statusCode = null,
    errorCode = null,
    ...facts
  } = result;
  const text = refusal ?? tlsReason ?? response;
  // Half a surrogate pair has no UTF-8; an attempt must not be lost for it, so it becomes U+FFFD.
  const [textOffset, textBytes] = text === undefined ? [0, null] : bytes.add(encoder.encode(text));
  const row = { ...facts, latencyMs, statusCode, errorCode, textBytes, textOffset, nowMs };
  return dependsOnSettings(result.ending) ? { ...row, options } : row;
}

/** Settings as they are stored: JSON of those that are set. */
export function settingsToJson(settings: SubscriptionSettings): string | null {
  const named = Object.entries(settings).filter(
    ([name, value]) => value !== NO_SETTINGS[name as keyof SubscriptionSettings],
  );
  return named.length === 0 ? null : JSON.stringify(Object.fromEntries(named));
}

/** Limited by characters, as filters are long and take several times as much once parsed. */
const parsedSettings = new LRUCache<string, SubscriptionSettings>({
  maxSize: 16_000_000,
  sizeCalculation: (_, text) => text.length,
});

/**
 * The same object for the same text, as claims bring it by the thousand.
 * @throws EvregError `internal` for what evreg could not have written
 */
export function settingsFromJson(text: string | null): SubscriptionSettings {
  if (text === null) return NO_SETTINGS;
  const known = parsedSettings.get(text);
  if (known !== undefined) return known;
  const settings = { ...NO_SETTINGS, ...(parseStored(text) as Partial<SubscriptionSettings>) };
  parsedSettings.set(text, settings);
  return settings;
}
