import type { Work } from "../thread/operation.ts";
import { finishAttempts } from "./finish.ts";
import type { FinishedRow } from "./wire.ts";

type EndedLease = Pick<FinishedRow, "deliveryId" | "claimId" | "startedAtMs" | "durationMs">;

const NO_ANSWER = {
  ending: "interrupted",
  statusCode: null,
  errorCode: null,
  latencyMs: null,
  textBytes: null,
  textOffset: 0,
} as const;

/**
 * Makes leased deliveries due again: what held them is gone, so their attempts were cut short.
 * @param which those whose lease ended by `nowMs`; with `all`, as whoever sent deliveries is gone, all but those that
 * consumers have taken
 * @returns how many
 */
export function releaseLeases(work: Work, which: "expired" | "all", nowMs: number): number {
  const ended = work.rows<EndedLease>(
    `SELECT delivery_id AS deliveryId, claim_id AS claimId, claimed_ms AS startedAtMs, max(0, ?1 - claimed_ms) AS durationMs
      FROM lease WHERE until_ms <= ?1 ${which === "all" ? "OR consumer IS NULL" : ""}`,
    nowMs,
  );
  if (ended.length === 0) return 0;
  const results = ended.map((lease): FinishedRow => Object.assign(lease, NO_ANSWER, { nowMs }));
  return finishAttempts(work, results).filter(({ kind }) => kind === "stored").length;
}
