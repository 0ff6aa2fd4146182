/** What a refused time should have been, to follow the field's name in a message. */
export const ISO_TIME_EXPECTED =
  "must be an ISO 8601 date and time with its zone, on a day that exists, such as 2026-01-31T09:30:00Z";

const ISO_TIME =
  /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2})(?::(\d{2})(?:\.(\d{1,9}))?)?(?:Z|([+-])(\d{2}):(\d{2}))$/;

const FIRST_MS = Date.parse("0000-01-01T00:00:00.000Z");
const LAST_MS = Date.parse("9999-12-31T23:59:59.999Z");

/**
 * The instant an ISO 8601 text names, in milliseconds since the epoch; `undefined` unless it is `YYYY-MM-DDThh:mm` with
 * optional seconds and fraction (at most nine digits), followed by `Z` or an offset. `Date.parse` would also take local
 * times, and 31 February as a day in March.
 *
 * A fraction finer than a millisecond is rounded up: stored times are whole milliseconds, so both "from then on" and
 * "before then" keep their exact meaning.
 */
export function parseIsoTime(text: string): number | undefined {
  const match = ISO_TIME.exec(text);
  if (match === null) return undefined;
  const [year, month, day, hour, minute] = match.slice(1, 6).map(Number) as [
    number,
    number,
    number,
    number,
    number,
  ];
  const second = Number(match[6] ?? 0);
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  const fractionMs = Math.ceil(Number((match[7] ?? "0").padEnd(9, "0")) / 1_000_000);
  const date = new Date(0);
  // Not Date.UTC, which takes the years 0 to 99 for 1900 to 1999.
  date.setUTCFullYear(year, month - 1, day);
  if (date.getUTCMonth() !== month - 1 || date.getUTCDate() !== day) return undefined;
  const offset = offsetMinutes(match[8], Number(match[9] ?? 0), Number(match[10] ?? 0));
  if (offset === undefined) return undefined;
  const instant = date.getTime() + ((hour * 60 + minute - offset) * 60 + second) * 1_000 + fractionMs;
  // An offset or a fraction may lead past the years that four digits can write.
  return instant < FIRST_MS || instant > LAST_MS ? undefined : instant;
}

function offsetMinutes(sign: string | undefined, hours: number, minutes: number): number | undefined {
  if (hours > 23 || minutes > 59) return undefined;
  return (sign === "-" ? -1 : 1) * (hours * 60 + minutes);
}
