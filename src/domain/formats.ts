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

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

type DurationUnit = keyof typeof UNIT_MS;

/** Those of times that people think of in minutes at least. */
export const MINUTES_AND_UP: readonly DurationUnit[] = ["m", "h", "d"];

/** The shortest text that `parseDurationMs` reads as this: `90m`, `12h`, `5d`. */
export function durationText(ms: number): string {
  const [unit, length] = Object.entries(UNIT_MS).findLast(([, unitMs]) => ms % unitMs === 0) ?? ["ms", 1];
  return `${ms / length}${unit}`;
}

/** `500ms`, `2s`, `30m`, `12h` or `90d` in milliseconds; `undefined` for any other text, and for a unit not in `units`. */
export function parseDurationMs(
  text: string,
  units = Object.keys(UNIT_MS) as readonly DurationUnit[],
): number | undefined {
  const [, count, name] = /^(\d+)([a-z]+)$/.exec(text) ?? [];
  const unit = units.find((known) => known === name);
  return unit === undefined ? undefined : Number(count) * UNIT_MS[unit];
}

const UNITS = ["kB", "MB", "GB", "TB"] as const;

/** For a person: `812 bytes`, `1.4 GB`; exact numbers are in the JSON. */
export function byteCount(bytes: number): string {
  if (bytes < 1_000) return `${bytes} bytes`;
  let value = bytes;
  let unit = -1;
  do {
    value /= 1_000;
    unit += 1;
  } while (value >= 999.5 && unit < UNITS.length - 1);
  return `${value < 9.95 ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}

const KEY_BYTES = 32;
const HEX = /^[0-9a-f]{64}$/i;
const BASE64 = /^[A-Za-z0-9+/_-]{43}=?$/;

/** The key a text stands for: 32 bytes as hex, base64 or base64url; `undefined` for any other text. */
export function parseEncryptionKey(text: string): Uint8Array | undefined {
  if (HEX.test(text)) return Buffer.from(text, "hex");
  // Both alphabets are read; a text of that length is of 32 bytes, and two bits that must be nothing.
  if (!BASE64.test(text)) return undefined;
  const bytes = Buffer.from(text, "base64");
  return bytes.length === KEY_BYTES ? bytes : undefined;
}

/**
 * An address as it may be shown. What stands before an `@` may be a password, also where the whole is no URL, such as a
 * password with a slash in it.
 */
export function withoutUserInfo(address: string): string {
  return address.replace(/^(\s*[a-z][a-z0-9+.-]*:[/\\]+)?.*@/is, "$1[redacted]@");
}
