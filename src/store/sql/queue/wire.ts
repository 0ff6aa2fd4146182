import type {
  AttemptResult,
  Claim,
  ClaimAnswer,
  ClaimedSubscription,
  FinishOptions,
  FinishOutcome,
  RecordClaim,
} from "../../queue.ts";
import type { EventCandidate, RecordDecision } from "../../rules/recording.ts";
import type { StoredSecrets } from "../../secret-cipher.ts";

// This file says what writes of events, claims and results are as they cross the thread.

/** A call that records events, as it crosses the thread. */
export interface EventBatch {
  readonly atomic: boolean;
  readonly events: readonly WireEvent[];
  readonly claim?: RecordClaim | undefined;
}

export interface WireEvent extends Omit<EventCandidate, "payload"> {
  /** Where its payload begins in the bytes of the batch. */
  readonly offset: number;
  readonly length: number;
}

/** Claims as they cross the thread. */
export interface LeasedRows {
  readonly rows: readonly ClaimedRow[];
  /** The `ClaimedSubscriptionRow`s of all of them, as JSON; it may have more. */
  readonly subscriptions: string;
}

export type WireRecordOutcome =
  | Exclude<RecordDecision, { kind: "recorded" }>
  | (RecordDecision & {
      readonly kind: "recorded";
      /** Deliveries of the event that were leased as they were made. The one payload is the event's, which the caller has. */
      readonly leases?: LeasedRows;
    });

/** An answer with claims as it crosses the thread. */
export interface ClaimReply extends LeasedRows, Omit<ClaimAnswer, "claims"> {}

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
export type FinishReply = FinishOutcome & { readonly claimed?: LeasedRows };
