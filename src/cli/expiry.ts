import { MINUTES_AND_UP, parseDurationMs } from "../domain/duration.ts";
import { parseIsoTime } from "../domain/iso-time.ts";
import { toIso } from "../runtime/clock.ts";
import { usage } from "./usage.ts";

/** Past this a Date has no ISO form. */
const LAST_MS = Date.UTC(9999, 11, 31);

/** `90d`, `12h` or `30m` from now as ISO 8601; an ISO 8601 time as it is. `usage` for any other text. */
export function expiry(text: string, nowMs: number): string {
  const span = parseDurationMs(text, MINUTES_AND_UP);
  if (span === undefined) {
    if (parseIsoTime(text) !== undefined) return text;
    throw usage(
      `--expires: must be a time from now on, such as 90d, 12h or 30m, or an ISO 8601 date and time with its zone, such as 2030-01-31T09:30:00Z; not ${JSON.stringify(text)}.`,
    );
  }
  const atMs = nowMs + span;
  if (atMs > LAST_MS)
    throw usage(`--expires: ${text} is too far away; leave it out for a token that never ends.`);
  return toIso(atMs);
}
