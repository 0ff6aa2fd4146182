import { parseDurationMs } from "../domain/duration.ts";
import { usage } from "./usage.ts";

interface DurationLimits {
  readonly minMs: number;
  readonly maxMs: number;
  /** Examples, for the message. */
  readonly such: string;
}

/** A flag's duration in milliseconds; `usage` in the flag's own units for one that is none, too short or too long. */
export function durationWithin(flag: string, text: string, { minMs, maxMs, such }: DurationLimits): number {
  const ms = parseDurationMs(text);
  if (ms !== undefined && ms >= minMs && ms <= maxMs) return ms;
  throw usage(
    `--${flag}: must be a time such as ${such}, from ${durationText(minMs)} to ${durationText(maxMs)}; not ${JSON.stringify(text)}.`,
  );
}

/** In days, seconds or milliseconds, the largest that it is a whole number of. */
function durationText(ms: number): string {
  if (ms % 86_400_000 === 0 && ms > 0) return `${ms / 86_400_000}d`;
  return ms % 1_000 === 0 ? `${ms / 1_000}s` : `${ms}ms`;
}
