import type {
  AttemptResult,
  Claim,
  ClaimAnswer,
  ClaimedSubscription,
  FinishOptions,
  FinishOutcome,
  RecordClaim,
} from "../../queue.ts";
import type { EventCandidate, RecordDecision, RecordingCall } from "../../rules/recording.ts";
import type { StoredSecrets } from "../../secret-cipher.ts";

// This file says what writes of events, claims and results are as they cross the thread.

/** A call that records events, as it crosses the thread. */
export interface EventBatch extends RecordingCall<Incoming> {
  readonly claim?: RecordClaim | undefined;
}

export interface Incoming extends EventCandidate {
  /** Where its payload begins in the bytes of the batch. */
  readonly offset: number;
}

/** Deliveries of one event that were leased as they were made. */
export interface RecordedLeases {
  readonly claimId: number;
  /** The subscriptions of these leases and of others, as in `ClaimReply`. */
  readonly subscriptions: string;
  readonly deliveries: readonly { readonly deliveryId: number; readonly subscriptionId: number }[];
}

export type WireRecordOutcome =
  | Exclude<RecordDecision, { kind: "recorded" }>
  | (RecordDecision & { readonly kind: "recorded"; readonly leases?: RecordedLeases });

/** An answer with claims as it crosses the thread. */
export interface ClaimReply extends Omit<ClaimAnswer, "claims"> {
  readonly rows: readonly ClaimedRow[];
  /** The `ClaimedSubscriptionRow`s of all of them, as JSON. */
  readonly subscriptions: string;
}

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

export interface FinishedRow extends AttemptResult {
  readonly nowMs: number;
  readonly options?: FinishOptions;
}

/** What became of a result, with what comes next in its order if that was leased. */
export type FinishReply = FinishOutcome & { readonly claimed?: ClaimReply };
