import { LRUCache } from "lru-cache";
import { DELIVERY_LIMITS } from "../domain/delivery.ts";
import type { SubscriptionSettings } from "../domain/subscription-settings.ts";
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
  return storable(new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes, { stream: cut }));
}

function storable(text: string): string {
  const withoutNul = text.replaceAll("\0", "\uFFFD");
  // Each replacement takes three bytes, so the text can be longer than the bytes it was made of.
  if (Buffer.byteLength(withoutNul) <= DELIVERY_LIMITS.responseBytes) return withoutNul;
  const buffer = new Uint8Array(DELIVERY_LIMITS.responseBytes);
  const { written } = new TextEncoder().encodeInto(withoutNul, buffer);
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

/** The subscription whose secrets are in a request. */
type Signed = Pick<ClaimedSubscription, "secret" | "previous" | "bearer"> & {
  readonly settings: Pick<SubscriptionSettings, "headers">;
};

/**
 * The text of an attempt without the secrets of its request: a handler may answer with the very headers it was sent. All text
 * of attempts passes here.
 *
 * Values are found in any case, as they are, escaped once as in JSON or a URL, in base64 and in hex, also where the limit of what
 * is stored cuts them off. A text with a secret loses its escapes, too.
 */
export function redact(text: string, { secret, previous, bearer, settings }: Signed): string {
  // Searched also by their beginnings.
  const keys = [secret, previous?.secret, bearer].filter((value) => (value?.length ?? 0) >= MIN_LENGTH);
  // Searched as whole words, as operators' own values may be part of others.
  const own = Object.values(settings.headers ?? {}).filter((value) => value.length >= MIN_OWN_LENGTH);
  const isCut = Buffer.byteLength(text) > DELIVERY_LIMITS.responseBytes - MIN_LENGTH;
  // An escape that is cut off has no meaning.
  const plain = unescaped(isCut ? text.replace(CUT_ESCAPE, "") : text);
  const searched = lower(plain);
  const spans = [
    ...(keys as string[]).flatMap(spellingsOf).flatMap((one) => spansOf(searched, one, false, isCut)),
    ...own.flatMap(spellingsOf).flatMap((one) => spansOf(searched, one, true, isCut)),
  ];
  if (spans.length === 0) return text;
  let redacted = "";
  let at = 0;
  for (const [start, end] of spans.toSorted(([one], [other]) => one - other)) {
    if (start > at || at === 0) redacted += plain.slice(at, start) + CENSOR;
    at = Math.max(at, end);
  }
  return storable(redacted + plain.slice(at));
}

type TextSpan = readonly [start: number, end: number];

/** Where a text has a spelling of a value: as a whole word, or its beginning at least. */
function spansOf(text: string, spelling: string, isWord: boolean, isCut: boolean): TextSpan[] {
  const spans: TextSpan[] = [];
  const head = isWord ? spelling : spelling.slice(0, MIN_PREFIX);
  for (let start = text.indexOf(head), end; start !== -1; start = text.indexOf(head, end)) {
    end = start + head.length;
    while (end < text.length && text[end] === spelling[end - start]) end += 1;
    if (!isWord || !(joins(text, start) || joins(text, end))) spans.push([start, end]);
  }
  if (!isCut) return spans;
  let shown = Math.min(spelling.length, text.length);
  while (shown >= MIN_LENGTH && !text.endsWith(spelling.slice(0, shown))) shown -= 1;
  const start = text.length - shown;
  if (shown >= MIN_LENGTH && !(isWord && joins(text, start))) spans.push([start, text.length]);
  return spans;
}

/** Whether a word continues across this place. */
function joins(text: string, place: number): boolean {
  return place > 0 && LETTERS.test(text.slice(place - 1, place + 1));
}

function unescaped(text: string): string {
  return text.replaceAll(ESCAPE, (_, percent?: string, unicode?: string, itself?: string) => {
    return itself ?? String.fromCharCode(Number.parseInt((percent ?? unicode)!, 16));
  });
}

/** Changes only ASCII: some other letters have a longer lower case, which would move indexes. */
function lower(text: string): string {
  return text.replaceAll(/[A-Z]+/g, (capitals) => capitals.toLowerCase());
}

function spellingsOf(value: string): readonly string[] {
  const known = spellings.get(value);
  if (known !== undefined) return known;
  const bare = value.startsWith(STANDARD_PREFIX) ? [value.slice(STANDARD_PREFIX.length)] : [];
  const bytes = Buffer.from(value);
  const inBase64 = [0, 1, 2].map((before) => base64Inside(bytes, before));
  const texts = [
    value,
    ...bare,
    value.replaceAll(" ", "+"),
    // A value that looks escaped is unescaped in the text.
    unescaped(value),
    bytes.toString("hex"),
    ...inBase64,
    ...inBase64.map((text) => text.replaceAll("+", "-").replaceAll("/", "_")),
  ];
  // No text is longer than what is stored of an answer.
  const made = [
    ...new Set(texts.map((text) => lower(text).slice(0, 2 * DELIVERY_LIMITS.responseBytes))),
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
