import { invalidField } from "../../domain/error.ts";

/**
 * The engine reads text with a NUL back cut short and changes lone surrogates, both without a word. Text with either is
 * refused before it gets there. Bytes that must survive whatever they are go in as BLOBs.
 */
export function checkText(field: string, text: string): string {
  if (text.includes("\0")) throw invalidField(field, "must not hold the character U+0000");
  if (!text.isWellFormed()) throw invalidField(field, "must not hold half a surrogate pair");
  return text;
}

/** A rowid the engine can be asked for; anything else names no record. */
export function isRowid(value: number): boolean {
  return Number.isSafeInteger(value) && value > 0;
}
