import type { AttemptErrorCode } from "../domain/delivery.ts";

export interface FinishOptions {
  /** A subscription is deactivated when its attempts have failed throughout for so long, see `domain/failing.ts`. */
  readonly disableAfterMs?: number;
}

export interface FinishAnswer {
  /** In order, whether each result was applied. */
  readonly applied: readonly boolean[];
  /**
   * Places of results that were left for another call, as what they tell of would be too much for one: their deliveries are
   * leased as before. Each call applies one of its own or one of another call beside it.
   */
  readonly deferred: readonly number[];
  /** How many deliveries came to their end by that. */
  readonly ended: EndedCounts;
  /** The subscriptions that were deactivated by this call. */
  readonly deactivated: readonly Deactivated[];
}

/** Deliveries as they were stored, whatever was expected of their attempts. */
export interface EndedCounts {
  readonly delivered: number;
  readonly failed: number;
  readonly filtered: number;
}

/** Events that the service recorded about itself in one call. */
export interface ServiceEventCounts {
  readonly events: number;
  /** Made with them, all due at once. */
  readonly deliveries: number;
}

export interface Deactivated {
  readonly subscriptionId: number;
  readonly reason: string;
}

export interface AttemptResult {
  readonly deliveryId: number;
  readonly claimId: number;
  readonly startedAtMs: number;
  readonly durationMs: number;
  readonly statusCode?: number;
  readonly errorCode?: AttemptErrorCode;
  /** At most 1 KiB of text without NUL. */
  readonly response?: string;
  /** Beside `address_refused`, where there is no answer: which address, and why. Kept as the answer would be. */
  readonly refusal?: string;
  readonly next: NextStep;
  /** When a connection was made for it. */
  readonly connection?: ConnectionTimes;
  /** The subscription gets no attempt before `untilMs`, except one that a person asks for, unless it has left `handler`. */
  readonly slow?: Wait;
  /** The same where the subscription is ordered by then and this one keeps its place: all behind it wait for its retry. */
  readonly wait?: Wait;
}

interface Wait {
  readonly untilMs: number;
  readonly handler: string;
}

/** Where the time of an attempt went that had a connection made for it. */
export interface ConnectionTimes {
  /** `undefined` where the handler's host is an address. */
  readonly dnsMs: number | undefined;
  /** TCP and TLS. */
  readonly connectMs: number;
  /** From the request to the beginning of the answer; `undefined` when none came. */
  readonly firstByteMs: number | undefined;
}

export type NextStep =
  | { readonly kind: "delivered" }
  /** Failed; due again then (`held` instead when the subscription is paused by now). */
  | { readonly kind: "retry"; readonly atMs: number }
  /** Failed for the last time. */
  | { readonly kind: "failed" }
  /**
   * Failed for the last time as `handler` is gone, and the subscription is deactivated with this reason, holding its
   * other deliveries. When it has another handler by now it stays active, and this one is due again at once while it
   * has retries left.
   */
  | { readonly kind: "gone"; readonly reason: string; readonly handler: string }
  /** Not carried to an end (stopping): due again now, and it does not count against the retries. */
  | { readonly kind: "returned" }
  /** Kept back by its subscription's filter: it has ended without an attempt. */
  | { readonly kind: "filtered" }
  /** Never begun: all is as if the delivery had not been claimed. */
  | { readonly kind: "unsent" };
