import type { EventRecord } from "../../events.ts";
import type { RecordClaim } from "../../queue.ts";
import type { EventCandidate, RecordDecision, RecordingCall } from "../../rules/recording.ts";
import type { ByteWriter } from "../thread/protocol.ts";

// Calls that record events, and their outcomes, as they cross the thread.

export interface RecordCall {
  readonly events: readonly EventRecord[];
  readonly nowMs: number;
  readonly atomic: boolean;
  readonly claim?: RecordClaim | undefined;
}

/** A call as it crosses. */
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
  /** As in `ClaimReply`, of these and others. */
  readonly subscriptions: string;
  readonly deliveries: readonly { readonly deliveryId: number; readonly subscriptionId: number }[];
}

/** What came of one event. */
export type StoredOutcome =
  | Exclude<RecordDecision, { kind: "recorded" }>
  | (RecordDecision & { readonly kind: "recorded"; readonly leases?: RecordedLeases });

/** Revisions count from 1. */
const NO_REVISION = 0;

/** @param bytes takes the payloads */
export function eventBatch({ events, nowMs, atomic, claim }: RecordCall, bytes: ByteWriter): EventBatch {
  const incoming = events.map((event): Incoming => {
    const { actionId, payload, idempotencyKey = null } = event;
    const revision = event.lookupOnly === true ? NO_REVISION : event.revision;
    const [offset, length] = bytes.add(payload);
    return { actionId, revision, offset, length, idempotencyKey, nowMs };
  });
  return { atomic, events: incoming, claim };
}
