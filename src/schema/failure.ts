import { VALUE_BYTES } from "./limits.ts";

/** Why a value does not conform. All of it is cut to some length, as it comes from the value and the schema. */
export interface Failure {
  /** Where, from the root of the value: `address.zip`, `items[2].sku`; `""` is the root itself. See `fieldName`. */
  readonly field: string;
  /** The rest of a sentence that begins with the field: `must be a string`, `is required`; at most 1 KiB. */
  readonly message: string;
  /** The offending value, `null` when it is missing; one of more than 1 KiB is cut (see `shortened`). */
  readonly value: unknown;
  /** What else does not conform, where it was asked for; at most `FAILURES_TOLD` with this one. */
  readonly others?: readonly Failure[];
}

/**
 * A value fit to be sent back: itself up to so many bytes of JSON, beyond that the beginning of its JSON as a string that
 * ends in an ellipsis. A number that was too large for a double has become infinite, which JSON cannot hold: one too large
 * stands for it.
 */
export function shortened(value: unknown, maxBytes = VALUE_BYTES): unknown {
  if (value === undefined) return null;
  if (typeof value === "number" && !Number.isFinite(value)) return value > 0 ? "1e999" : "-1e999";
  if (typeof value !== "object" && typeof value !== "string") return value;
  if (typeof value === "string" && value.length > maxBytes) return cut(value, maxBytes);
  const text = JSON.stringify(value);
  if (Buffer.byteLength(text) <= maxBytes) return value;
  return cut(typeof value === "string" ? value : text, maxBytes);
}

/** A text of at most so many bytes, with an ellipsis in place of what it has more. */
export function shortenedText(text: string, maxBytes = VALUE_BYTES): string {
  return text.length <= maxBytes && Buffer.byteLength(text) <= maxBytes ? text : cut(text, maxBytes);
}

function cut(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text.slice(0, maxBytes).toWellFormed());
  let end = Math.min(bytes.length, maxBytes - 3);
  while (end > 0 && (bytes[end]! & 0xc0) === 0x80) end--;
  return `${bytes.toString("utf8", 0, end)}…`;
}
