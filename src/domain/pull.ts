import type { ANSWERS } from "../model/answers.ts";
import type { AttemptErrorCode } from "./delivery.ts";
import { inputSchema, label, type ValueOf } from "./request.ts";

// How consumers take the deliveries of a pull subscription, and say what became of them.

/** A delivery that a consumer has taken, with all that a handler would be sent. */
export interface PulledDelivery extends ValueOf<(typeof ANSWERS)["PulledDelivery"]> {}

/**
 * delivered: done. failed: a failed attempt, that is retried as one to a handler is. released: not begun, and due again at
 * once. extended: still under way.
 */
const PULL_OUTCOMES = ["delivered", "failed", "released", "extended"] as const;
export type PullOutcome = (typeof PULL_OUTCOMES)[number];

/** What was made of one result. */
export interface FinishedPull extends ValueOf<(typeof ANSWERS)["FinishedPull"]> {}

export const PULL_LIMITS = {
  claimMax: 100,
  waitMaxMs: 20_000,
  leaseMinMs: 1_000,
  leaseMaxMs: 3_600_000,
  leaseDefaultMs: 30_000,
  results: 100,
  reasonLength: 16_384,
  durationMaxMs: 86_400_000,
} as const;

/** What an attempt of a consumer may have failed with. */
const CONSUMER_ERROR_CODES = [
  "consumer_failed",
  "timeout",
  "dns_failed",
  "connection_refused",
  "connection_reset",
  "tls_failed",
  "protocol_error",
  "network_error",
] as const satisfies readonly AttemptErrorCode[];
export type ConsumerErrorCode = (typeof CONSUMER_ERROR_CODES)[number];

const BASE = 36;
const LEASE = /^[0-9a-z]{1,11}(?:\.[0-9a-z]{1,11}){2}$/;
/** Longer than one ever is. */
const LEASE_LENGTH = 256;

const leaseMs = {
  type: "integer",
  minimum: PULL_LIMITS.leaseMinMs,
  maximum: PULL_LIMITS.leaseMaxMs,
  default: PULL_LIMITS.leaseDefaultMs,
} as const;

export const NEW_CLAIM = inputSchema("NewClaim", {
  max: {
    type: "integer",
    minimum: 1,
    maximum: PULL_LIMITS.claimMax,
    default: 1,
    description: "Most deliveries to take. An ordered subscription gives one at a time.",
  },
  wait_ms: {
    type: "integer",
    minimum: 0,
    maximum: PULL_LIMITS.waitMaxMs,
    default: 0,
    description: "How long to wait while none is due.",
    examples: [20_000],
  },
  lease_ms: {
    ...leaseMs,
    description: "How long they are this consumer's. Without a result by then they are due again.",
  },
  consumer: {
    ...label,
    description: "Who takes them, for `GET /v1/deliveries/{id}`; the token's name unless given.",
    examples: ["worker-3"],
  },
});

/** Asks for deliveries that are due. */
export type NewClaim = ValueOf<typeof NEW_CLAIM>;

/** That, checked. */
export interface ConsumerClaim extends Required<NewClaim> {
  /** The rowid of the subscription. */
  readonly subscription: number;
  /** Each caller has one value here. */
  readonly caller: unknown;
}

export const PULL_RESULTS = inputSchema(
  "PullResults",
  {
    results: {
      type: "array",
      minItems: 1,
      maxItems: PULL_LIMITS.results,
      items: {
        type: "object",
        properties: {
          lease: { type: "string", maxLength: LEASE_LENGTH, description: "As the claim gave it." },
          outcome: {
            type: "string",
            enum: PULL_OUTCOMES,
            description:
              "`delivered`; `failed`, which is retried as a handler's failure is; `released`: not begun, and due again at once; `extended`: still under way.",
          },
          status: {
            type: "integer",
            minimum: 100,
            maximum: 599,
            description: "The HTTP status that a handler behind the consumer answered.",
          },
          error_code: { type: "string", enum: CONSUMER_ERROR_CODES, default: "consumer_failed" },
          reason: {
            type: "string",
            maxLength: PULL_LIMITS.reasonLength,
            description: "The answer, or why it failed. The first 1 KiB is kept, without secrets.",
          },
          duration_ms: {
            type: "integer",
            minimum: 0,
            maximum: PULL_LIMITS.durationMaxMs,
            description: "How long the attempt took. At most the time since the claim is stored.",
          },
          lease_ms: { ...leaseMs, description: "Of `extended`: how long from now." },
        },
        required: ["lease", "outcome"],
        additionalProperties: false,
      },
    },
  },
  ["results"],
);
export type PullResults = ValueOf<typeof PULL_RESULTS>;
/** What became of one. */
export type PullResult = PullResults["results"][number];

/**
 * What a lease's text holds. It names, and says nothing else: whoever has it can change it. The claim's id is secret, and the
 * store knows which subscription's delivery it goes with.
 */
export interface LeaseNames {
  readonly subscriptionId: number;
  readonly deliveryId: number;
  readonly claimId: number;
}

export function leaseText({ subscriptionId, deliveryId, claimId }: LeaseNames): string {
  return [subscriptionId, deliveryId, claimId].map((number) => number.toString(BASE)).join(".");
}

/** `undefined` for a text that `leaseText` does not make. */
export function parseLease(text: string): LeaseNames | undefined {
  if (!LEASE.test(text)) return undefined;
  const numbers = text.split(".").map((part) => Number.parseInt(part, BASE));
  if (!numbers.every((number) => Number.isSafeInteger(number))) return undefined;
  const [subscriptionId, deliveryId, claimId] = numbers as [number, number, number];
  return { subscriptionId, deliveryId, claimId };
}
