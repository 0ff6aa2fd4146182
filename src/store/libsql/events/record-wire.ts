import type { EventRecord } from "../../events.ts";
import type { RecordClaim } from "../../queue.ts";
import type { EventCandidate, RecordDecision, RecordingCall } from "../../rules/recording.ts";
import type { ByteWriter } from "../thread/protocol.ts";

// Calls that record events, and their outcomes, as they cross the thread.

/** A call as it crosses, as JSON. */
export interface RecordRows {
  readonly atomic: boolean;
  readonly nowMs: number;
  /** Where the payloads start, one behind the other, in the batch's bytes. */
  readonly offset: number;
  /** As lists they cost a third of what objects do, and a batch has hundreds. */
  readonly events: readonly EventRow[];
  readonly claim?: Pick<RecordClaim, "subscriptions" | "leaseMs">;
}

type EventRow = readonly [actionId: number, revision: number, payloadBytes: number, key: string | null];

/** A call as the store's thread has it. */
export interface EventBatch extends RecordingCall<Incoming> {
  readonly claim?: Pick<RecordClaim, "subscriptions" | "leaseMs"> | undefined;
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
export function recordRows({ events, nowMs, atomic, claim }: RecordCall, bytes: ByteWriter): RecordRows {
  const offset = bytes.length;
  const rows = events.map(({ actionId, revision, payload, idempotencyKey, lookupOnly }): EventRow => {
    bytes.add(payload);
    const checked = lookupOnly === true ? NO_REVISION : revision;
    return [actionId, checked, payload.byteLength, idempotencyKey ?? null];
  });
  const call = { atomic, nowMs, offset, events: rows };
  if (claim === undefined) return call;
  const { subscriptions, leaseMs } = claim;
  return { ...call, claim: { subscriptions, leaseMs } };
}

export function eventBatch({ atomic, nowMs, offset: start, events, claim }: RecordRows): EventBatch {
  let offset = start;
  const incoming = events.map(([actionId, revision, length, idempotencyKey]): Incoming => {
    const event = { actionId, revision, offset, length, idempotencyKey, nowMs };
    offset += length;
    return event;
  });
  return { atomic, events: incoming, claim };
}

export interface RecordCall {
  readonly events: readonly EventRecord[];
  readonly nowMs: number;
  readonly atomic: boolean;
  readonly claim?: RecordClaim | undefined;
}
