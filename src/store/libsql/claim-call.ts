import type { Claim, ClaimAnswer, ClaimedEvent, ClaimedSubscription, ClaimRequest } from "../claims.ts";
import { bytesAt } from "./bytes-out.ts";
import { settingsOf } from "./kept-settings.ts";
import type { KeptSecrets, OpenedSecrets } from "./opened-secrets.ts";

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
