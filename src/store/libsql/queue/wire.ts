import { LRUCache } from "lru-cache";
import type { AttemptErrorCode } from "../../../domain/delivery.ts";
import { NO_SETTINGS, type SubscriptionSettings } from "../../../domain/subscription-settings.ts";
import type {
  AttemptResult,
  Claim,
  ClaimAnswer,
  ClaimedEvent,
  ClaimedSubscription,
  ClaimRequest,
  FinishOptions,
  NextStep,
} from "../../queue.ts";
import type { KeptSecrets, OpenedSecrets } from "../../secret-cipher.ts";
import { bytesAt, type FinishCall } from "../thread/protocol.ts";
import { parseKept } from "../thread/sql.ts";
import type { QueuedWrite } from "../thread/write-queue.ts";

/** A request as it crosses the thread. */
export interface ClaimCall {
  readonly nowMs: number;
  readonly leaseMs: number;
  readonly tiers: ClaimRequest["tiers"];
  readonly maxPayloadBytes: number;
  /** Four a subscription: rowid, leased, room, tier. */
  readonly shares: Float64Array;
  readonly others: ClaimRequest["others"];
  /** Subscriptions to be left out, as they were found unreadable. */
  readonly without: readonly number[];
}

/** A subscription's four numbers in `ClaimCall.shares`. */
export const SHARE_NUMBERS = 4;

/** An answer as it crosses the thread: rows as JSON, which is cheaper to carry than as many objects. */
export interface ClaimLanding {
  readonly claimId: number;
  /** `ClaimRow`s. */
  readonly rows: string;
  /** `SubscriptionRow`s. */
  readonly subscriptions: string;
  /** Where their payloads begin in the answer's bytes, each event's once, in the order of the rows. */
  readonly offset: number;
  /** Events of the rows whose payloads are damaged, and not among the bytes. */
  readonly damaged: readonly number[];
  /** Subscriptions that were left out, as what is due of them cannot be read. */
  readonly unreadable: readonly number[];
  readonly nextDueAtMs: number | undefined;
  readonly limitedTiers: readonly number[];
}

export type ClaimRow = readonly [
  deliveryId: number,
  attempt: number,
  failures: number,
  subscriptionId: number,
  eventId: number,
  payloadBytes: number,
  timestampedMs: number,
  action: string,
  isLate: 0 | 1,
];

type SubscriptionRow = readonly [
  subscriptionId: number,
  handler: string,
  maxRetries: number,
  secret: KeptSecrets["secret"],
  previousSecret: KeptSecrets["previousSecret"],
  previousUntilMs: KeptSecrets["previousUntilMs"],
  bearer: KeptSecrets["bearer"],
  bearerToken: KeptSecrets["bearerToken"],
  settings: string | null,
];

export function claimCall(request: ClaimRequest, without: readonly number[] = []): ClaimCall {
  const { nowMs, leaseMs, tiers, maxPayloadBytes, others } = request;
  const shares = new Float64Array(request.shares.size * SHARE_NUMBERS);
  let at = 0;
  for (const [id, { leased, room, tier }] of request.shares) {
    shares[at] = id;
    shares[at + 1] = leased;
    shares[at + 2] = room;
    shares[at + 3] = tier;
    at += SHARE_NUMBERS;
  }
  return { nowMs, leaseMs, tiers, maxPayloadBytes, shares, others, without };
}

export function claimAnswer(
  landing: ClaimLanding,
  bytes: ArrayBuffer | undefined,
  secrets: OpenedSecrets,
): ClaimAnswer {
  const { claimId, nextDueAtMs, limitedTiers } = landing;
  const subscriptions = new Map<number, ClaimedSubscription>();
  for (const row of JSON.parse(landing.subscriptions) as SubscriptionRow[]) {
    const [
      subscriptionId,
      handler,
      maxRetries,
      secret,
      previousSecret,
      previousUntilMs,
      bearer,
      bearerToken,
      settings,
    ] = row;
    const kept = { secret, previousSecret, previousUntilMs, bearer, bearerToken };
    const opened = secrets.of(subscriptionId, kept);
    subscriptions.set(subscriptionId, {
      subscriptionId,
      handler,
      maxRetries,
      ...opened,
      settings: settingsOf(settings),
    });
  }
  const events = new Map<number, ClaimedEvent>();
  const damaged = new Set(landing.damaged);
  let { offset } = landing;
  const claims = (JSON.parse(landing.rows) as ClaimRow[]).map((row): Claim => {
    const [
      deliveryId,
      attempt,
      failures,
      subscriptionId,
      eventId,
      payloadBytes,
      timestampedMs,
      action,
      isLate,
    ] = row;
    let event = events.get(eventId);
    if (event === undefined) {
      const isDamaged = damaged.has(eventId);
      const payload = isDamaged ? undefined : bytesAt(bytes, [offset, payloadBytes]);
      event = { eventId, action, payload, timestampedMs };
      events.set(eventId, event);
      if (!isDamaged) offset += payloadBytes;
    }
    // Every delivery has its subscription, which is never removed.
    return {
      deliveryId,
      claimId,
      attempt,
      failures,
      isLate: isLate === 1,
      event,
      subscription: subscriptions.get(subscriptionId)!,
    };
  });
  return { claims, nextDueAtMs, limitedTiers };
}

/** The answer's text, or why the address was refused, if there is one, lies in the flight's bytes, so whatever it holds is kept. */
export type ResultRow = readonly [
  deliveryId: number,
  claimId: number,
  startedAtMs: number,
  durationMs: number,
  statusCode: number | null,
  errorCode: AttemptErrorCode | null,
  responseOffset: number | null,
  responseBytes: number,
  next: NextStep,
  /** Few have any of it. */
  more?: {
    readonly connection: AttemptResult["connection"] | undefined;
    readonly slow: AttemptResult["slow"] | undefined;
    readonly wait: AttemptResult["wait"] | undefined;
  },
];

/** The last error of a delivery whose attempt failed so. */
export function errorOf(statusCode: ResultRow[4], errorCode: ResultRow[5]): string {
  return errorCode ?? (statusCode === null ? "network_error" : `HTTP ${statusCode}`);
}

const encoder = new TextEncoder();

export function finishWrite(
  results: readonly AttemptResult[],
  nowMs: number,
  { disableAfterMs }: FinishOptions = {},
): QueuedWrite {
  // Half a surrogate pair has no UTF-8; an attempt must not be lost for it, so it becomes U+FFFD.
  const responses = results.map(({ response, refusal = response }) =>
    refusal === undefined ? undefined : encoder.encode(refusal),
  );
  return {
    bytes: responses.reduce((sum, response) => sum + (response?.byteLength ?? 0), 0),
    rows: results.length,
    pack(buffer, start) {
      let offset = start;
      const rows = results.map((result, index): ResultRow => {
        const { deliveryId, claimId, startedAtMs, durationMs, statusCode, errorCode, next } = result;
        const { connection, slow, wait } = result;
        const response = responses[index];
        const at = offset;
        if (response !== undefined) buffer.set(response, at);
        offset += response?.byteLength ?? 0;
        const row = [
          deliveryId,
          claimId,
          startedAtMs,
          durationMs,
          statusCode ?? null,
          errorCode ?? null,
          response === undefined ? null : at,
          response?.byteLength ?? 0,
          next,
        ] as const;
        const isBare = connection === undefined && slow === undefined && wait === undefined;
        return isBare ? row : [...row, { connection, slow, wait }];
      });
      const call: FinishCall = {
        nowMs,
        results: JSON.stringify(rows),
        ...(disableAfterMs === undefined ? {} : { disableAfterMs }),
      };
      return { name: "finishAttempts", call };
    },
  };
}

/** Settings as they lie in the file: JSON of those that differ from none. */
export function keptSettings(settings: SubscriptionSettings): string | null {
  const named = Object.entries(settings).filter(
    ([name, value]) => value !== NO_SETTINGS[name as keyof SubscriptionSettings],
  );
  return named.length === 0 ? null : JSON.stringify(Object.fromEntries(named));
}

/** Counted in characters of the texts: filters are long, and what is parsed of them takes several times as much. */
const parsedSettings = new LRUCache<string, SubscriptionSettings>({
  maxSize: 16_000_000,
  sizeCalculation: (_, text) => text.length,
});

/** The same object for the same text, as claims bring it by the thousand. */
export function settingsOf(kept: string | null): SubscriptionSettings {
  if (kept === null) return NO_SETTINGS;
  const known = parsedSettings.get(kept);
  if (known !== undefined) return known;
  const settings = { ...NO_SETTINGS, ...(parseKept(kept) as Partial<SubscriptionSettings>) };
  parsedSettings.set(kept, settings);
  return settings;
}
