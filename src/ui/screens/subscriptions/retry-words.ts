import { capital } from "../../parts/texts.ts";
import { durationText, parseDurationMs } from "../../../domain/formats.ts";
import {
  deactivationText,
  defaultRetries,
  retriesText,
  type RetryDefaults,
  retryWaitMs,
} from "../../../domain/retry.ts";
import type { Draft } from "./draft.ts";

/** So many waits are named. */
const NAMED_WAITS = 7;

/** `0s, 2s, 4s, 8s, 16s`: the wait before each retry there is. */
export function waitsText(retries: number, waitsMs: readonly number[] | null): string {
  const named = Array.from({ length: Math.min(retries, NAMED_WAITS) }, (_, index) =>
    durationText(retryWaitMs(index + 1, 0, waitsMs)),
  );
  return `${named.join(", ")}${retries > NAMED_WAITS ? " and so on" : ""}`;
}

/**
 * `5 retries, the last 30 s after the first attempt.`, and whether the deactivation of the subscription comes before.
 * @param disableAfterMs see `RetryDefaults`
 */
export function retriesSentence(
  retries: number,
  waitsMs: readonly number[] | null,
  disableAfterMs = 0,
): string {
  const text = retriesText(retries, waitsMs);
  const ends = deactivationText(retries, waitsMs, disableAfterMs);
  return `${capital(text)}.${ends === undefined ? "" : ` ${ends}`}`;
}

/** What the retries and waits in a form come to; `undefined` while they cannot be read. */
export function draftedRetries(
  { max_retries: typed, retry_schedule: schedule }: Pick<Draft, "max_retries" | "retry_schedule">,
  usual: RetryDefaults,
): string | undefined {
  const waits = schedule
    .split(/[\s,]+/)
    .filter(Boolean)
    .map((wait) => parseDurationMs(wait));
  if (waits.includes(undefined)) return undefined;
  const own = waits.length === 0 ? null : (waits as number[]);
  const retries = typed.trim() === "" ? defaultRetries({ retry_schedule: own }, usual) : Number(typed);
  if (!Number.isInteger(retries) || retries < 0 || retries > 20) return undefined;
  return retriesSentence(retries, own ?? usual.retry_schedule, usual.disable_after_ms);
}
