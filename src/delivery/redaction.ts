import { LRUCache } from "lru-cache";
import { DELIVERY_LIMITS } from "../domain/delivery.ts";
import type { SubscriptionSettings } from "../domain/subscription-settings.ts";
import { CENSOR } from "../runtime/logger.ts";
import type { ClaimedSubscription } from "../store/queue.ts";

/** So much of a text is searched: more than is stored, so that what is cut off within a secret is not stored. */
export const SEARCHED_BYTES = 2 * DELIVERY_LIMITS.responseBytes;
/** Shorter values can be guessed, and are in every text. */
const MIN_LENGTH = 4;
/** Shorter values of own headers may be words of any text, and stay. */
const MIN_OWN_LENGTH = 8;
/** This much of a value's beginning is redacted anywhere. */
const MIN_PREFIX = 12;
const STANDARD_PREFIX = "whsec_";
const MAX_SPELLINGS = 10_000;
/** The escapes of ASCII characters in URLs and JSON. */
const ESCAPE = /%([0-7][\da-f])|\\u00([0-7][\da-f])|\\(["/\\])/gi;

const spellings = new LRUCache<string, readonly string[]>({ max: MAX_SPELLINGS });

/** The subscription whose secrets are in a request. */
type Signed = Pick<ClaimedSubscription, "secret" | "previous" | "bearer"> & {
  readonly settings: Pick<SubscriptionSettings, "headers">;
};

/**
 * The text of an attempt as it is stored, without the secrets of its request: a handler may answer with the very headers it was
 * sent. All text of attempts passes here.
 *
 * Values and their beginnings are found in any case, as they are, escaped once as in JSON or a URL, in base64 and in hex. A text
 * with a secret loses its escapes, too.
 */
export function redact(text: string, { secret, previous, bearer, settings }: Signed): string {
  const keys = [secret, previous?.secret, bearer].filter((value) => (value?.length ?? 0) >= MIN_LENGTH);
  const own = Object.values(settings.headers ?? {}).filter((value) => value.length >= MIN_OWN_LENGTH);
  const plain = unescaped(text.slice(0, SEARCHED_BYTES));
  const searched = lower(plain);
  const spans = [...(keys as string[]), ...own].flatMap(spellingsOf).flatMap((one) => spansOf(searched, one));
  if (spans.length === 0) return storable(text);
  let redacted = "";
  let at = 0;
  for (const [start, end] of spans.toSorted(([one], [other]) => one - other)) {
    if (start > at || at === 0) redacted += plain.slice(at, start) + CENSOR;
    at = Math.max(at, end);
  }
  return storable(redacted + plain.slice(at, unescaped(text.slice(0, DELIVERY_LIMITS.responseBytes)).length));
}

/** At most 1,024 bytes of UTF-8. NUL, where stores cut text, becomes U+FFFD. Other control characters stay. */
function storable(text: string): string {
  const { written } = encoder.encodeInto(text.replaceAll("\0", "\uFFFD"), encoded);
  return encoded.toString("utf8", 0, written);
}

const encoder = new TextEncoder();
const encoded = Buffer.alloc(DELIVERY_LIMITS.responseBytes);

type TextSpan = readonly [start: number, end: number];

/** Where a text has a spelling of a value, or its beginning at least. */
function spansOf(text: string, spelling: string): TextSpan[] {
  const spans: TextSpan[] = [];
  const head = spelling.slice(0, MIN_PREFIX);
  for (let start = text.indexOf(head), end; start !== -1; start = text.indexOf(head, end)) {
    end = start + head.length;
    while (end < text.length && text[end] === spelling[end - start]) end += 1;
    spans.push([start, end]);
  }
  return spans;
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
  const made = [...new Set(texts.map((text) => lower(text).slice(0, SEARCHED_BYTES)))].filter(
    (text) => text.length >= MIN_LENGTH,
  );
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
