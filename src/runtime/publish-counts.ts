import type { BatchResult } from "../domain/event.ts";
import { asEvregError, codeOfStatus, type EvregErrorCode } from "../domain/error.ts";

/** Why an event was not taken. A closed set, as it is a label. */
export const REFUSAL_REASONS = [
  "malformed",
  "unauthorized",
  "forbidden",
  "not_found",
  "conflict",
  "gone",
  "too_large",
  "unsupported_media_type",
  "invalid",
  "rate_limited",
  "unavailable",
  "internal",
  /** Nothing wrong with it; another item of its atomic batch was refused. */
  "withheld",
] as const satisfies readonly (EvregErrorCode | "withheld")[];
export type RefusalReason = (typeof REFUSAL_REASONS)[number];

/** What came of publishing since the start. Plain numbers, as they are added to on the path that must stay the fastest. */
export class PublishCounts {
  /** Events stored. */
  single = 0;
  batch = 0;
  /** By evreg about itself. */
  service = 0;
  /** Answered with an earlier event; nothing stored. */
  replayedSingle = 0;
  replayedBatch = 0;
  /** Deliveries stored with events. */
  queuedDeliveries = 0;
  /** Made due by replays, of events published before. */
  replayedDeliveries = 0;
  /** Had come to their end, and were made due again by a person. */
  retriedDeliveries = 0;
  readonly refused: Record<RefusalReason, number> = Object.fromEntries(
    REFUSAL_REASONS.map((reason) => [reason, 0]),
  ) as Record<RefusalReason, number>;

  /** Events that evreg stored about itself. */
  told({ events, deliveries }: { readonly events: number; readonly deliveries: number }): void {
    this.service += events;
    this.queuedDeliveries += deliveries;
  }

  /** A request that was refused as a whole. */
  refuse(failure: unknown): void {
    this.#refuse(asEvregError(failure).code);
  }

  /** The items of a batch that were refused while the batch as a whole was answered. */
  refuseItems({ errors, meta }: BatchResult): void {
    for (const { code } of errors) this.#refuse(codeOfStatus(code));
    this.refused.withheld += meta.rejected - errors.length;
  }

  #refuse(code: EvregErrorCode): void {
    this.refused[isReason(code) ? code : "internal"] += 1;
  }
}

function isReason(code: EvregErrorCode): code is EvregErrorCode & RefusalReason {
  return (REFUSAL_REASONS as readonly string[]).includes(code);
}
