import { DELIVERY_LIMITS } from "../domain/delivery.ts";
import { CENSOR } from "../runtime/scrub.ts";
import type { ClaimedSubscription } from "../store/claims.ts";
import { cutToLimit } from "./response-text.ts";

/** Shorter values can be guessed, and are in every text. */
const LEAST_LENGTH = 4;
const STANDARD_PREFIX = "whsec_";
const MOST_KEPT = 10_000;
/** How JSON, URLs and HTML write a character of ASCII that they do not write as it is. */
const ESCAPE =
  /%([0-7][\da-f])|\\u00([0-7][\da-f])|\\x([0-7][\da-f])|\\(["'/\\])|&#(\d{2,3});|&#x([0-7][\da-f]);|&(amp|lt|gt|quot|apos);/gi;
const ESCAPE_SIGN = /[%\\&]/;
const CUT_ESCAPE = /(?:%[\da-f]?|\\(?:u[\da-f]{0,3}|x[\da-f]?)?|&[#\w]{0,5})$/i;
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

const spellings = new Map<string, readonly string[]>();

/**
 * The text of an attempt as it may be kept and told: without what its request's headers carried that others must not
 * know. A handler may answer with the very headers it was sent, and an attempt is shown to whoever may read. All text of
 * attempts passes here, and nowhere else.
 *
 * Found are the values whatever their case, escaped as JSON, URLs and HTML do it, and in base64 and hex. Of one that the
 * limit of what is kept cuts through, the beginning goes as well.
 */
export function censor(text: string, values: readonly string[]): string {
  const isCut = Buffer.byteLength(text) > DELIVERY_LIMITS.responseBytes - LEAST_LENGTH;
  const wanted = values.flatMap(spellingsOf);
  const spans = findAll({ text: lower(text), places: undefined }, wanted, isCut);
  if (ESCAPE_SIGN.test(text)) {
    // Of an escape that is cut through nobody knows what it means.
    const whole = isCut ? text.replace(CUT_ESCAPE, "") : text;
    spans.push(...findAll(unescaped(whole), wanted, isCut));
  }
  if (spans.length === 0) return text;
  let kept = "";
  let at = 0;
  for (const [begin, end] of spans.toSorted(([one], [other]) => one - other)) {
    if (begin > at || at === 0) kept += text.slice(at, begin) + CENSOR;
    at = Math.max(at, end);
  }
  return cutToLimit(kept + text.slice(at));
}

/** What its requests carry that others must not know: also the secret before, and what operators made up themselves. */
export function secretsOf({ secret, previous, bearer, settings }: ClaimedSubscription): readonly string[] {
  const values = [secret, previous?.secret, bearer, ...Object.values(settings.headers ?? {})];
  return values.filter((value) => typeof value === "string" && value.length >= LEAST_LENGTH) as string[];
}

type Span = readonly [begin: number, end: number];

/** A text in lower case, and where each of its characters was; `undefined` where nothing has moved. */
interface Searched {
  readonly text: string;
  readonly places: readonly number[] | undefined;
}

function findAll({ text, places }: Searched, wanted: readonly string[], isCut: boolean): Span[] {
  const spans: Span[] = [];
  for (const spelling of wanted) {
    const beginning = spelling.slice(0, LEAST_LENGTH);
    for (let at = text.indexOf(beginning); at >= 0; at = text.indexOf(beginning, at + 1)) {
      const end = Math.min(text.length, at + spelling.length);
      if (end - at < spelling.length && !isCut) break;
      if (!spelling.startsWith(text.slice(at, end))) continue;
      spans.push(places === undefined ? [at, end] : [places[at]!, places[end]!]);
    }
  }
  return spans;
}

function unescaped(text: string): Searched {
  let read = "";
  const places: number[] = [];
  let at = 0;
  const take = (piece: string): void => {
    for (let index = 0; index < piece.length; index += 1) places.push(at + index);
    read += piece;
    at += piece.length;
  };
  for (const found of text.matchAll(ESCAPE)) {
    take(text.slice(at, found.index));
    places.push(at);
    read += meant(found);
    at += found[0].length;
  }
  take(text.slice(at));
  places.push(at);
  return { text: lower(read), places };
}

function meant([, percent, unicode, hex, itself, decimal, hexEntity, named]: RegExpExecArray): string {
  if (itself !== undefined) return itself;
  if (named !== undefined) return ENTITIES[named.toLowerCase()]!;
  if (decimal !== undefined) return String.fromCharCode(Number(decimal));
  return String.fromCharCode(Number.parseInt((percent ?? unicode ?? hex ?? hexEntity)!, 16));
}

/** Only of ASCII: of other letters some have more than one in lower case, and places would move. */
function lower(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (capitals) => capitals.toLowerCase());
}

function spellingsOf(value: string): readonly string[] {
  const known = spellings.get(value);
  if (known !== undefined) return known;
  const bare = value.startsWith(STANDARD_PREFIX) ? [value.slice(STANDARD_PREFIX.length)] : [];
  const bytes = Buffer.from(value);
  const inBase64 = [0, 1, 2].map((before) => base64Inside(bytes, before));
  const found = [
    value,
    ...bare,
    value.replaceAll(" ", "+"),
    // One that looks escaped itself is read as what it looks like.
    unescaped(value).text,
    bytes.toString("hex"),
    ...inBase64,
    ...inBase64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
  ];
  const made = [...new Set(found.map(lower))].filter((text) => text.length >= LEAST_LENGTH);
  if (spellings.size >= MOST_KEPT) spellings.clear();
  spellings.set(value, made);
  return made;
}

/** What base64 makes of bytes that stand in others, so many of which (modulo three) come before. */
function base64Inside(bytes: Uint8Array, before: number): string {
  const text = Buffer.concat([Buffer.alloc(before), bytes])
    .toString("base64")
    .replaceAll("=", "");
  const isShared = (before + bytes.byteLength) % 3 !== 0;
  return text.slice(before === 0 ? 0 : before + 1, isShared ? -1 : undefined);
}
