import { LRUCache } from "lru-cache";
import { DELIVERY_LIMITS } from "../domain/delivery.ts";
import { CENSOR } from "../runtime/logger.ts";
import type { ClaimedSubscription } from "../store/queue.ts";

/**
 * The beginning of a handler's answer as it is stored: at most 1,024 bytes of UTF-8. What is not UTF-8, and NUL (where stores
 * cut text), becomes U+FFFD. Control characters stay. `undefined` for no bytes.
 *
 * @param cut whether more followed, so that a character may be incomplete at the end
 */
export function responseText(bytes: Uint8Array, cut: boolean): string | undefined {
  if (bytes.byteLength === 0) return undefined;
  // In stream mode the decoder omits an incomplete last character instead of replacing it.
  const decoded = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: cut });
  // Each replacement takes three bytes, so the text can be longer than the bytes.
  return cutToLimit(decoded.replaceAll("\0", "\uFFFD"));
}

function cutToLimit(text: string): string {
  if (Buffer.byteLength(text) <= DELIVERY_LIMITS.responseBytes) return text;
  const buffer = new Uint8Array(DELIVERY_LIMITS.responseBytes);
  const { written } = new TextEncoder().encodeInto(text, buffer);
  return Buffer.from(buffer.buffer, 0, written).toString("utf8");
}

/** Shorter values can be guessed, and are in every text; so much may be shown of a value that the end cuts off. */
const MIN_LENGTH = 4;
/** This much of a secret's beginning is redacted anywhere. */
const MIN_PREFIX = 12;
/** Shorter values of own headers may be words of any text, and stay. */
const MIN_OWN_LENGTH = 8;
const STANDARD_PREFIX = "whsec_";
const MAX_SPELLINGS = 10_000;
/** The escapes of ASCII characters in URLs and JSON. */
const ESCAPE = /%([0-7][\da-f])|\\u00([0-7][\da-f])|\\(["/\\])/gi;
const CUT_ESCAPE = /(?:%[\da-f]?|\\(?:u[\da-f]{0,3})?)$/i;
const LETTERS = /^[\p{L}\p{N}]{2}$/u;

const spellings = new LRUCache<string, readonly string[]>({ max: MAX_SPELLINGS });

/** The secrets in a subscription's requests. */
export interface Secrets {
  /** Also searched by their beginnings. */
  readonly keys: readonly string[];
  /** Operators' own values, searched as whole words: they may be part of others. */
  readonly own: readonly string[];
}

/**
 * The text of an attempt without the secrets of its request: a handler may answer with the very headers it was sent. All text
 * of attempts passes here.
 *
 * Values are found in any case, as they are, escaped once as in JSON or a URL, in base64 and in hex, also where the limit of what
 * is stored cuts them off. As this blocks the main thread, it takes one pass of the text for each possible spelling, whatever
 * text and values are.
 */
export function redact(text: string, { keys, own }: Secrets): string {
  const isCut = Buffer.byteLength(text) > DELIVERY_LIMITS.responseBytes - MIN_LENGTH;
  const wanted: Wanted[] = [
    ...keys.flatMap(spellingsOf).map((spelling) => [spelling, false] as const),
    ...own.flatMap(spellingsOf).map((spelling) => [spelling, true] as const),
  ];
  // An escape that is cut off has no meaning.
  const plain = unescaped(isCut ? text.replace(CUT_ESCAPE, "") : text);
  const spans = [
    ...findAll(lower(text), wanted, isCut),
    ...findAll(plain.text, wanted, isCut).map(([start, end]): Span => [
      plain.places[start]!,
      plain.places[end]!,
    ]),
  ];
  if (spans.length === 0) return text;
  let redacted = "";
  let at = 0;
  for (const [start, end] of spans.toSorted(([one], [other]) => one - other)) {
    if (start > at || at === 0) redacted += text.slice(at, start) + CENSOR;
    at = Math.max(at, end);
  }
  return cutToLimit(redacted + text.slice(at));
}

export function secretsOf({ secret, previous, bearer, settings }: ClaimedSubscription): Secrets {
  const keys = [secret, previous?.secret, bearer];
  return {
    keys: keys.filter((value) => typeof value === "string" && value.length >= MIN_LENGTH) as string[],
    own: Object.values(settings.headers ?? {}).filter((value) => value.length >= MIN_OWN_LENGTH),
  };
}

type Span = readonly [start: number, end: number];

type Wanted = readonly [spelling: string, isWord: boolean];

function findAll(text: string, wanted: readonly Wanted[], isCut: boolean): Span[] {
  return wanted.flatMap((one) => {
    return text.includes(one[0].slice(0, MIN_LENGTH)) ? find(text, one, isCut) : [];
  });
}

/** Searches as Knuth, Morris and Pratt do: no character of the text is read twice. */
function find(text: string, [spelling, isWord]: Wanted, isCut: boolean): Span[] {
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

/** For each prefix of the spelling, the length of its longest suffix that is a shorter prefix. */
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

/** A text without escapes, in lower case, and for each of its characters and its end the index in the original. */
function unescaped(text: string): { readonly text: string; readonly places: readonly number[] } {
  const places: number[] = [];
  const plain = text.replaceAll(
    ESCAPE,
    (_escape, percent?: string, unicode?: string, itself?: string) =>
      itself ?? String.fromCharCode(Number.parseInt((percent ?? unicode)!, 16)),
  );
  let at = 0;
  for (const { 0: escape, index } of text.matchAll(ESCAPE)) {
    for (; at < index; at += 1) places.push(at);
    places.push(at);
    at += escape.length;
  }
  for (; at <= text.length; at += 1) places.push(at);
  return { text: lower(plain), places };
}

/** Only ASCII: some other letters have a longer lower case, which would move indexes. */
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
    // A value that looks escaped is unescaped in the text.
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

/** The part of a base64 text that depends only on these bytes, after so many others (modulo three). */
function base64Inside(bytes: Uint8Array, before: number): string {
  const text = Buffer.concat([Buffer.alloc(before), bytes])
    .toString("base64")
    .replaceAll("=", "");
  const isShared = (before + bytes.byteLength) % 3 !== 0;
  return text.slice(before === 0 ? 0 : before + 1, isShared ? -1 : undefined);
}
