import type { AttemptErrorCode } from "../../domain/delivery.ts";
import type { AttemptResult, FinishOptions, NextStep } from "../finishes.ts";
import type { QueuedWrite } from "./flight-queue.ts";
import type { FinishCall } from "./messages.ts";
/** The answer's text, or why the address was refused, if there is one, lies in the flight's bytes, so whatever it holds is kept. */
export type ResultRow = readonly [
  deliveryId: number,
  claimId: number,
  startedAtMs: number,
  durationMs: number,
  statusCode: number | null,
  errorCode: AttemptErrorCode | null,
  responseOffset: number | null,
  responseBytes: number,
  next: NextStep,
  /** Few have any of it. */
  more?: {
    readonly connection: AttemptResult["connection"] | undefined;
    readonly slow: AttemptResult["slow"] | undefined;
    readonly wait: AttemptResult["wait"] | undefined;
  },
];

/** The last error of a delivery whose attempt failed so. */
export function errorOf(statusCode: ResultRow[4], errorCode: ResultRow[5]): string {
  return errorCode ?? (statusCode === null ? "network_error" : `HTTP ${statusCode}`);
}

const encoder = new TextEncoder();

export function finishWrite(
  results: readonly AttemptResult[],
  nowMs: number,
  { disableAfterMs }: FinishOptions = {},
): QueuedWrite {
  // Half a surrogate pair has no UTF-8; an attempt must not be lost for it, so it becomes U+FFFD.
  const responses = results.map(({ response, refusal = response }) =>
    refusal === undefined ? undefined : encoder.encode(refusal),
  );
  return {
    bytes: responses.reduce((sum, response) => sum + (response?.byteLength ?? 0), 0),
    rows: results.length,
    pack(buffer, start) {
      let offset = start;
      const rows = results.map((result, index): ResultRow => {
        const { deliveryId, claimId, startedAtMs, durationMs, statusCode, errorCode, next } = result;
        const { connection, slow, wait } = result;
        const response = responses[index];
        const at = offset;
        if (response !== undefined) buffer.set(response, at);
        offset += response?.byteLength ?? 0;
        const row = [
          deliveryId,
          claimId,
          startedAtMs,
          durationMs,
          statusCode ?? null,
          errorCode ?? null,
          response === undefined ? null : at,
          response?.byteLength ?? 0,
          next,
        ] as const;
        const isBare = connection === undefined && slow === undefined && wait === undefined;
        return isBare ? row : [...row, { connection, slow, wait }];
      });
      const call: FinishCall = {
        nowMs,
        results: JSON.stringify(rows),
        ...(disableAfterMs === undefined ? {} : { disableAfterMs }),
      };
      return { name: "finishAttempts", call };
    },
  };
}
