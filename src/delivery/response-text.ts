import { LRUCache } from "lru-cache";
import { DELIVERY_LIMITS } from "../domain/delivery.ts";
import { CENSOR } from "../runtime/logger.ts";
import type { ClaimedSubscription } from "../store/queue.ts";

/**
 * The stored start of a handler's answer as text: at most 1,024 bytes of UTF-8, what is not UTF-8 and NUL replaced by
 * U+FFFD (stores cut text at a NUL). `undefined` for no bytes. Nothing else is cleaned: whoever shows it to a terminal
 * must mind control characters.
 *
 * @param bytes the beginning of the answer
 * @param cut whether more followed, so that a character may be cut through at the end
 */
export function responseText(bytes: Uint8Array, cut: boolean): string | undefined {
  if (bytes.byteLength === 0) return undefined;
  // In stream mode the decoder keeps an unfinished last character to itself instead of replacing it.
  const decoded = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: cut });
  // Each replacement takes three bytes, so the text can be longer than what it was made from.
  return cutToLimit(decoded.replaceAll("\0", "\uFFFD"));
}

/** As much of a text from its start as is stored of an answer. */
function cutToLimit(text: string): string {
  if (Buffer.byteLength(text) <= DELIVERY_LIMITS.responseBytes) return text;
  const buffer = new Uint8Array(DELIVERY_LIMITS.responseBytes);
  const { written } = new TextEncoder().encodeInto(text, buffer);
  return Buffer.from(buffer.buffer, 0, written).toString("utf8");
}

/** Shorter values can be guessed, and are in every text; of one that is cut through, so much may be shown. */
const MIN_LENGTH = 4;
/** So much of a secret's beginning is a secret wherever it stands. */
const MIN_PREFIX = 12;
/** Of the values of own headers, which many may read anyway, those stay that may be words of any text. */
const MIN_OWN_LENGTH = 8;
/** Escaped text is escaped again where it is put into other text. */
const MAX_ESCAPINGS = 3;
const STANDARD_PREFIX = "whsec_";
const MAX_SPELLINGS = 10_000;
/** How JSON, URLs and HTML write a character of ASCII that they do not write as it is. */
const ESCAPE =
  /%([0-7][\da-f])|\\u00([0-7][\da-f])|\\x([0-7][\da-f])|\\(["'/\\])|&#0{0,6}(\d{2,3});|&#x0{0,6}([0-7][\da-f]);|&(amp|lt|gt|quot|apos);/gi;
const ESCAPE_SIGN = /[%\\&]/;
const CUT_ESCAPE = /(?:%[\da-f]?|\\(?:u[\da-f]{0,3}|x[\da-f]?)?|&[#\w]{0,11})$/i;
const LETTERS = /^[\p{L}\p{N}]{2}$/u;
const ENTITIES: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };

const spellings = new LRUCache<string, readonly string[]>({ max: MAX_SPELLINGS });

/** What a subscription's requests carry that others must not know. */
export interface Secrets {
  /** The beginning of one is looked for as well. */
  readonly keys: readonly string[];
  /** Operators' own values, which are looked for as whole words: they may be part of others. */
  readonly own: readonly string[];
}

/**
 * The text of an attempt as it may be stored and shown: without what its request's headers carried that others must not
 * know. A handler may answer with the very headers it was sent, and an attempt is shown to whoever may read. All text of
 * attempts passes here, and nowhere else.
 *
 * Found are the values whatever their case, escaped as JSON, URLs and HTML do it, and in base64 and hex. Of one that the
 * limit of what is stored cuts through, the beginning goes as well. It takes one pass of the text for each spelling that has
 * a chance, whatever text and values are, as this runs where everything else waits.
 */
export function redact(text: string, { keys, own }: Secrets): string {
  const isCut = Buffer.byteLength(text) > DELIVERY_LIMITS.responseBytes - MIN_LENGTH;
  const wanted = [...wantedOf(keys, false), ...wantedOf(own, true)];
  let searched: Searched = { text: lower(text), places: undefined };
  const spans = findAll(searched, wanted, isCut);
  for (let depth = 0; depth < MAX_ESCAPINGS && ESCAPE_SIGN.test(searched.text); depth += 1) {
    // Of an escape that is cut through nobody knows what it means.
    const whole = isCut ? searched.text.replace(CUT_ESCAPE, "") : searched.text;
    const read = unescaped(whole, searched.places);
    if (read.text === searched.text) break;
    searched = read;
    spans.push(...findAll(searched, wanted, isCut));
  }
  if (spans.length === 0) return text;
  let redacted = "";
  let at = 0;
  for (const [start, end] of spans.toSorted(([one], [other]) => one - other)) {
    if (start > at || at === 0) redacted += text.slice(at, start) + CENSOR;
    at = Math.max(at, end);
  }
  return cutToLimit(redacted + text.slice(at));
}

/** What its requests carry that others must not know: also the secret before, and what operators made up themselves. */
export function secretsOf({ secret, previous, bearer, settings }: ClaimedSubscription): Secrets {
  const keys = [secret, previous?.secret, bearer];
  return {
    keys: keys.filter((value) => typeof value === "string" && value.length >= MIN_LENGTH) as string[],
    own: Object.values(settings.headers ?? {}).filter((value) => value.length >= MIN_OWN_LENGTH),
  };
}

type Span = readonly [start: number, end: number];

/** A text in lower case, and where each of its characters was; `undefined` where nothing has moved. */
interface Searched {
  readonly text: string;
  readonly places: readonly number[] | undefined;
}

interface Wanted {
  readonly spelling: string;
  readonly isWord: boolean;
}

function wantedOf(values: readonly string[], isWord: boolean): Wanted[] {
  return values.flatMap((value) => spellingsOf(value).map((spelling) => ({ spelling, isWord })));
}

function findAll({ text, places }: Searched, wanted: readonly Wanted[], isCut: boolean): Span[] {
  const spans: Span[] = [];
  for (const one of wanted) {
    if (!text.includes(one.spelling.slice(0, MIN_LENGTH))) continue;
    for (const [start, end] of find(text, one, isCut)) {
      spans.push(places === undefined ? [start, end] : [places[start]!, places[end]!]);
    }
  }
  return spans;
}

/** As Knuth, Morris and Pratt search: no character of the text is looked at again after a part of the spelling was found. */
function find(text: string, { spelling, isWord }: Wanted, isCut: boolean): Span[] {
  const fallbacks = fallbacksOf(spelling);
  const least = isWord ? spelling.length : Math.min(spelling.length, MIN_PREFIX);
  const spans: [start: number, end: number][] = [];
  const found = (start: number, end: number): void => {
    if (isWord && (joins(text, start) || (end < text.length && joins(text, end)))) return;
    const last = spans.at(-1);
    if (last !== undefined && start <= last[1]) last[1] = end;
    else spans.push([start, end]);
  };
  let matched = 0;
  for (let at = 0; at < text.length; at += 1) {
    while (matched > 0 && spelling[matched] !== text[at]) {
      if (matched >= least) found(at - matched, at);
      matched = fallbacks[matched - 1]!;
    }
    if (spelling[matched] === text[at]) matched += 1;
    if (matched < spelling.length) continue;
    found(at + 1 - matched, at + 1);
    matched = fallbacks[matched - 1]!;
  }
  if (matched >= (isCut ? MIN_LENGTH : least)) found(text.length - matched, text.length);
  return spans;
}

/** For each beginning of it, how much of its end is a shorter beginning. */
function fallbacksOf(spelling: string): Uint16Array {
  const fallbacks = new Uint16Array(spelling.length);
  let length = 0;
  for (let at = 1; at < spelling.length; at += 1) {
    while (length > 0 && spelling[length] !== spelling[at]) length = fallbacks[length - 1]!;
    if (spelling[length] === spelling[at]) length += 1;
    fallbacks[at] = length;
  }
  return fallbacks;
}

/** Whether a word continues across this place. */
function joins(text: string, place: number): boolean {
  return place > 0 && LETTERS.test(text.slice(place - 1, place + 1));
}

function unescaped(text: string, before?: readonly number[]): Searched {
  const placeOf = (place: number): number => before?.[place] ?? place;
  let read = "";
  const places: number[] = [];
  let at = 0;
  const take = (piece: string): void => {
    for (let index = 0; index < piece.length; index += 1) places.push(placeOf(at + index));
    read += piece;
    at += piece.length;
  };
  for (const found of text.matchAll(ESCAPE)) {
    take(text.slice(at, found.index));
    places.push(placeOf(at));
    read += meant(found);
    at += found[0].length;
  }
  take(text.slice(at));
  places.push(placeOf(at));
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
  // No text is longer than what is stored of an answer.
  const made = [
    ...new Set(found.map((text) => lower(text).slice(0, 2 * DELIVERY_LIMITS.responseBytes))),
  ].filter((text) => text.length >= MIN_LENGTH);
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
