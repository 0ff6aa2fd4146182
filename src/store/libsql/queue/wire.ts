import { NO_SETTINGS, type SubscriptionSettings } from "../../../domain/subscription-settings.ts";
import type { EventRecord } from "../../events.ts";
import type {
  AttemptResult,
  Claim,
  ClaimAnswer,
  ClaimedEvent,
  ClaimedSubscription,
  FinishOptions,
  FinishOutcome,
  RecordClaim,
} from "../../queue.ts";
import type { EventCandidate, RecordDecision, RecordingCall } from "../../rules/recording.ts";
import { openSecrets, type StoredSecrets, Vault } from "../../secret-cipher.ts";
import type { ByteWriter } from "../thread/protocol.ts";
import { parseStored } from "../stored-record.ts";

// This file says what writes of events, claims and results are as they cross the thread.

/** A call that records events, as it crosses the thread. */
export interface EventBatch extends RecordingCall<Incoming> {
  readonly claim?: RecordClaim | undefined;
}

/** An event that is to be decided on. */
export interface Incoming extends EventCandidate {
  /** Where its payload lies in the batch's bytes. */
  readonly offset: number;
  readonly length: number;
}

/** Deliveries of one event that were leased as they were made. */
export interface RecordedLeases {
  readonly claimId: number;
  /** The subscriptions of these leases and of others, as in `ClaimReply`. */
  readonly subscriptions: string;
  readonly deliveries: readonly { readonly deliveryId: number; readonly subscriptionId: number }[];
}

/** What came of one event. */
export type WireRecordOutcome =
  | Exclude<RecordDecision, { kind: "recorded" }>
  | (RecordDecision & { readonly kind: "recorded"; readonly leases?: RecordedLeases });

/** Stands for no revision, as these count from 1. */
const NO_REVISION = 0;

/** @param bytes takes the payload */
export function incoming(event: EventRecord, nowMs: number, bytes: ByteWriter): Incoming {
  const { actionId, payload, idempotencyKey = null } = event;
  const revision = event.lookupOnly === true ? NO_REVISION : event.revision;
  const offset = bytes.add(payload);
  return { actionId, revision, offset, length: payload.byteLength, idempotencyKey, nowMs };
}

/** An answer with claims as it crosses the thread. */
export interface ClaimReply extends Omit<ClaimAnswer, "claims"> {
  readonly rows: readonly ClaimedRow[];
  /** The `ClaimedSubscriptionRow`s of all of them, as JSON. */
  readonly subscriptions: string;
}

/** A leased delivery. */
export interface ClaimedRow extends Required<Omit<Claim, "event" | "subscription" | "isFromReplay">> {
  readonly subscriptionId: number;
  readonly eventId: number;
  readonly timestampedMs: number;
  readonly action: string;
  readonly isFromReplay: 0 | 1;
  /** Which of the answer's payloads it is; one for all deliveries of an event, and `null` if it is damaged. */
  readonly payload: number | null;
}

/** A subscription as claims have it from the file. */
export interface ClaimedSubscriptionRow
  extends
    StoredSecrets,
    Pick<ClaimedSubscription, "subscriptionId" | "application" | "name" | "handler" | "maxRetries"> {
  readonly settings: string | null;
}

/** Reads the subscriptions of claims. It keeps the last ones, as many claims are for the same. */
export class ClaimedSubscriptions {
  readonly #vault: Vault;
  #lastRows = "[]";
  #last: ReadonlyMap<number, ClaimedSubscription> = new Map();

  constructor(key: Uint8Array | undefined) {
    this.#vault = new Vault(key);
  }

  /** @param rows `ClaimedSubscriptionRow`s as JSON */
  read(rows: string): ReadonlyMap<number, ClaimedSubscription> {
    if (rows === this.#lastRows) return this.#last;
    this.#lastRows = rows;
    const all = (JSON.parse(rows) as ClaimedSubscriptionRow[]).map((row) => this.#subscription(row));
    this.#last = new Map(all.map((one) => [one.subscriptionId, one]));
    return this.#last;
  }

  #subscription(row: ClaimedSubscriptionRow): ClaimedSubscription {
    const { subscriptionId, application, name, handler, maxRetries } = row;
    const secrets = openSecrets(this.#vault, { application, subscription: name }, row);
    const settings = settingsFromJson(row.settings);
    return { subscriptionId, application, name, handler, maxRetries, ...secrets, settings };
  }
}

/** Makes the claims of deliveries that were leased with their event, for their first attempts. */
export function recordedClaims(
  { claimId, subscriptions, deliveries }: RecordedLeases,
  event: ClaimedEvent,
  subscriptionsOf: ClaimedSubscriptions,
): readonly Claim[] {
  const byId = subscriptionsOf.read(subscriptions);
  return deliveries.map(({ deliveryId, subscriptionId }) => {
    return { deliveryId, claimId, attempt: 1, failures: 0, event, subscription: byId.get(subscriptionId)! };
  });
}

export function claimAnswer(
  { rows, nextDueAtMs, limitedTiers, ...reply }: ClaimReply,
  payloads: readonly Uint8Array[],
  subscriptionsOf: ClaimedSubscriptions,
): ClaimAnswer {
  const subscriptions = subscriptionsOf.read(reply.subscriptions);
  const events = new Map<number, ClaimedEvent>();
  const claims = rows.map((row): Claim => {
    const { deliveryId, claimId, attempt, failures, subscriptionId, eventId, action, timestampedMs } = row;
    let event = events.get(eventId);
    if (event === undefined) {
      const payload = row.payload === null ? undefined : payloads[row.payload];
      events.set(eventId, (event = { eventId, action, payload, timestampedMs }));
    }
    const isFromReplay = row.isFromReplay === 1;
    // Every delivery has its subscription, which is never removed.
    const subscription = subscriptions.get(subscriptionId)!;
    return { deliveryId, claimId, attempt, failures, isFromReplay, event, subscription };
  });
  return { claims, nextDueAtMs, limitedTiers };
}

/** A result to be stored. */
export interface FinishedRow extends AttemptResult {
  readonly nowMs: number;
  readonly options?: FinishOptions;
}

/** What became of a result, with what comes next in its order if that was leased. */
export type FinishReply = FinishOutcome & { readonly claimed?: ClaimReply };

/** Makes JSON of the settings that are set, as they are stored. */
export function settingsToJson(settings: SubscriptionSettings): string | null {
  const named = Object.entries(settings).filter(
    ([name, value]) => value !== NO_SETTINGS[name as keyof SubscriptionSettings],
  );
  return named.length === 0 ? null : JSON.stringify(Object.fromEntries(named));
}

/** @throws EvregError `internal` for what evreg could not have written */
export function settingsFromJson(text: string | null): SubscriptionSettings {
  return text === null
    ? NO_SETTINGS
    : { ...NO_SETTINGS, ...(parseStored(text) as Partial<SubscriptionSettings>) };
}
