import { judge } from "../domain/retry.ts";
import type { Clock } from "../runtime/clock.ts";
import type { Random } from "../runtime/random.ts";
import type { AttemptResult, Claim } from "../store/store.ts";
import { deliveryBody } from "./body.ts";
import type { SendResult } from "./exchange.ts";
import type { Sender } from "./sender.ts";
import { deliveryHeaders } from "./signature.ts";

export interface AttemptParts {
  readonly clock: Clock;
  readonly random: Random;
  readonly sender: Sender;
  /** Of evreg, for `User-Agent`. */
  readonly version: string;
}

/**
 * Carries one claim through: build, sign, send, judge. Never rejects.
 * @param signal cuts it short; the delivery is then handed back
 */
export async function attempt(
  claim: Claim,
  parts: AttemptParts,
  signal: AbortSignal,
): Promise<AttemptResult> {
  const { clock, random, sender, version } = parts;
  const startedAtMs = clock.now();
  const body = deliveryBody(claim);
  const headers = deliveryHeaders({
    eventId: claim.eventId,
    subscriptionId: claim.subscriptionId,
    action: claim.action,
    attempt: claim.attempt,
    body,
    secrets: [claim.secret],
    nowMs: startedAtMs,
    version,
  });
  const sent = await sender.send({ url: claim.handler, headers, body, signal });
  return attemptResult(claim, sent, { startedAtMs, finishedAtMs: clock.now(), fraction: random.fraction() });
}

/** What the store is told of an attempt. */
function attemptResult(
  claim: Claim,
  sent: SendResult,
  at: { startedAtMs: number; finishedAtMs: number; fraction: number },
): AttemptResult {
  const { failures, maxRetries } = claim;
  const { startedAtMs, finishedAtMs, fraction } = at;
  const verdict = judge({ outcome: sent, failures, maxRetries, finishedAtMs, fraction });
  return {
    deliveryId: claim.deliveryId,
    claimId: claim.claimId,
    startedAtMs,
    // The clock may have been set back meanwhile.
    durationMs: Math.max(0, finishedAtMs - startedAtMs),
    ...(sent.kind === "error"
      ? { errorCode: sent.errorCode }
      : {
          statusCode: sent.statusCode,
          ...(sent.response === undefined ? {} : { response: sent.response }),
        }),
    next: verdict.kind === "gone" ? { ...verdict, handler: claim.handler } : verdict,
  };
}

/** What the store is told of a claim that was never begun. */
export function returnedResult(claim: Claim, nowMs: number): AttemptResult {
  return attemptResult(
    claim,
    { kind: "error", errorCode: "interrupted" },
    { startedAtMs: nowMs, finishedAtMs: nowMs, fraction: 0 },
  );
}
