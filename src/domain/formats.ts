/** What a refused time should have been, to follow the field's name in a message. */
export const ISO_TIME_EXPECTED =
  "must be an ISO 8601 date and time with its zone, on a day that exists, such as 2026-01-31T09:30:00Z";

/** Date, time, seconds, fraction, zone. */
const ISO_TIME =
  /^(\d{4}-(?:0[1-9]|1[0-2])-\d{2})T((?:[01]\d|2[0-3]):[0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;

const FIRST_MS = Date.parse("0000-01-01T00:00:00.000Z");
const LAST_MS = Date.parse("9999-12-31T23:59:59.999Z");

/**
 * The instant an ISO 8601 text names, in milliseconds since the epoch; `undefined` unless it is `YYYY-MM-DDThh:mm` with
 * optional seconds and fraction (at most nine digits), followed by `Z` or an offset.
 *
 * A fraction finer than a millisecond is rounded up: stored times are whole milliseconds, so both "from then on" and
 * "before then" keep their exact meaning.
 */
export function parseIsoTime(text: string): number | undefined {
  const match = ISO_TIME.exec(text);
  if (match === null) return undefined;
  const [, date = "", time, seconds = "00", fraction = "", zone] = match;
  // `Date.parse` takes 31 February for a day in March.
  if (new Date(`${date}T00:00Z`).getUTCDate() !== Number(date.slice(-2))) return undefined;
  const fractionMs = Math.ceil(Number(fraction.padEnd(9, "0")) / 1_000_000);
  const instant = Date.parse(`${date}T${time}:${seconds}${zone}`) + fractionMs;
  // An offset or a fraction may lead past the years that four digits can write.
  return instant < FIRST_MS || instant > LAST_MS ? undefined : instant;
}

const UNIT_MS = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

type DurationUnit = keyof typeof UNIT_MS;

export const MINUTES_AND_UP: readonly DurationUnit[] = ["m", "h", "d"];

/** The shortest text that `parseDurationMs` reads as this: `0s`, `90m`, `12h`, `5d`. */
export function durationText(ms: number): string {
  if (ms === 0) return "0s";
  const [unit, length] = Object.entries(UNIT_MS).findLast(([, unitMs]) => ms % unitMs === 0) ?? ["ms", 1];
  return `${ms / length}${unit}`;
}

/** `100ms to 1m` */
export function durationRange({
  minimum,
  maximum,
}: {
  readonly minimum: number;
  readonly maximum: number;
}): string {
  return `${durationText(minimum)} to ${durationText(maximum)}`;
}

const SPAN_UNITS = [
  ["d", UNIT_MS.d],
  ["h", UNIT_MS.h],
  ["min", UNIT_MS.m],
  ["s", UNIT_MS.s],
  ["ms", UNIT_MS.ms],
] as const;

/** A time for a person, in its two largest units: `30 s`, `8 min 30 s`, `4 d 3 h`. */
export function spanText(ms: number): string {
  const first = SPAN_UNITS.findIndex(([, unitMs]) => ms >= unitMs);
  let restMs = ms;
  const parts = SPAN_UNITS.slice(Math.max(0, first), first + 2).flatMap(([unit, unitMs]) => {
    const count = Math.floor(restMs / unitMs);
    restMs -= count * unitMs;
    return count === 0 ? [] : [`${count} ${unit}`];
  });
  return parts.length === 0 ? "0 s" : parts.join(" ");
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

/**
 * A time of the past in ISO 8601: `30m`, `1h` or `2d` ago, and of a date its beginning in UTC. Any other text is answered as
 * it is; of what is no time, the service says what one looks like.
 */
export function pastTime(text: string, nowMs: number): string {
  const span = parseDurationMs(text);
  if (span !== undefined) return new Date(Math.max(0, nowMs - span)).toISOString();
  const beginning = `${text}T00:00:00Z`;
  return parseIsoTime(beginning) === undefined ? text : beginning;
}

const UNITS = ["kB", "MB", "GB", "TB"] as const;

/** A size for a person: `812 bytes`, `1.4 GB`; exact numbers are in the JSON. */
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

const HEX = /^[0-9a-f]{64}$/i;
/** A key of 32 bytes, in both alphabets. */
const BASE64 = /^[A-Za-z0-9+/_-]{43}=?$/;

/** The 32 bytes of a key given as hex, base64 or base64url; `undefined` for any other text. */
export function parseEncryptionKey(text: string): Uint8Array | undefined {
  if (HEX.test(text)) return Buffer.from(text, "hex");
  return BASE64.test(text) ? Buffer.from(text, "base64") : undefined;
}

/** What may stand in a header after `Bearer ` (RFC 6750). */
export const BEARER_TOKEN = /^[\w.~+/-]+=*$/;

/** An address as it may be shown. What is before an `@` may be a password, even where the whole is no URL. */
export function withoutUserInfo(address: string): string {
  return address.replace(/^(\s*[a-z][a-z0-9+.-]*:[/\\]+)?.*@/is, "$1[redacted]@");
}

/** A text as one word of a command, quoted where a shell would read it otherwise. */
export function shellWord(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
