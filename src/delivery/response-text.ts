import { DELIVERY_LIMITS } from "../domain/delivery.ts";

/**
 * The kept beginning of a handler's answer as text: at most 1,024 bytes of UTF-8, what is not UTF-8 and NUL replaced by
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

/** As much of a text from its beginning as is kept of an answer. */
export function cutToLimit(text: string): string {
  if (Buffer.byteLength(text) <= DELIVERY_LIMITS.responseBytes) return text;
  const buffer = new Uint8Array(DELIVERY_LIMITS.responseBytes);
  const { written } = new TextEncoder().encodeInto(text, buffer);
  return Buffer.from(buffer.buffer, 0, written).toString("utf8");
}
