import { durationRange, durationText, parseDurationMs } from "../domain/formats.ts";
import type { JsonSchema } from "../domain/request.ts";

/** How people write the values of a field: in flags, in registry files, in forms. */
export interface FieldKind<T = unknown> {
  /** What help shows in place of a value. */
  readonly helpValue: string;
  /** A form gives it several lines. */
  readonly hasLines?: true;
  /** The keys that a form shows on a telephone. */
  readonly inputMode?: "numeric" | "decimal";
  /** @throws Unreadable */
  read(text: string, schema: JsonSchema): T;
  /** The text that `read` takes for a value. */
  write(value: T): string;
  /**
   * What a registry file has: the value as JSON has it, or a text that `read` takes.
   * @throws Unreadable
   */
  inFile?(value: unknown, schema: JsonSchema): unknown;
}

/** What a text should have been: the rest of a sentence that begins with its flag or member. */
export class Unreadable extends Error {
  /** Where in the member: `[2]`. */
  readonly place: string;

  constructor(message: string, place = "") {
    super(message);
    this.place = place;
  }
}

export const NUMBER: FieldKind<number> = {
  helpValue: "NUMBER",
  inputMode: "decimal",
  read: numberOf,
  write: String,
};

/** A whole number. */
export const COUNT: FieldKind<number> = { ...NUMBER, inputMode: "numeric" };

/** Milliseconds, written as `30s`. */
export const DURATION: FieldKind<number> = {
  helpValue: "DURATION",
  read: durationOf,
  write: durationText,
  inFile: (value, schema) => (typeof value === "string" ? durationOf(value, schema) : value),
};

/** A list of them, written as `0s, 30s, 2h`. */
export const DURATIONS: FieldKind<readonly number[]> = {
  helpValue: "DURATIONS",
  read: (text, schema) => {
    const spans = text.split(/[\s,]+/).filter(Boolean);
    const { maxItems = Infinity } = schema as { maxItems?: number };
    if (spans.length > maxItems) {
      throw new Unreadable(`takes at most ${maxItems} times; these are ${spans.length}`);
    }
    return spans.map((span) => durationOf(span, itemsOf(schema)));
  },
  write: (spans) => spans.map(durationText).join(", "),
  inFile: (value, schema) =>
    Array.isArray(value)
      ? value.map((span: unknown, index) =>
          typeof span === "string" ? durationOf(span, itemsOf(schema), `[${index}]`) : span,
        )
      : DURATION.inFile!(value, itemsOf(schema)),
};

/** Headers of HTTP, a line each: `X-Team: billing`. */
export const HEADER_LINES: FieldKind<Readonly<Record<string, string>>> = {
  helpValue: "'NAME: VALUE'",
  hasLines: true,
  read: headersOf,
  write: (headers) =>
    Object.entries(headers)
      .map(([name, value]) => `${name}: ${value}`)
      .join("\n"),
};

function numberOf(text: string): number {
  if (/^\d+(\.\d+)?$/.test(text)) return Number(text);
  throw new Unreadable(`must be a number; not ${JSON.stringify(text)}`);
}

function durationOf(text: string, schema: JsonSchema, place?: string): number {
  const range = schema as { minimum: number; maximum: number };
  const ms = parseDurationMs(text);
  if (ms !== undefined && ms >= range.minimum && ms <= range.maximum) return ms;
  throw new Unreadable(
    `must be a time such as 500ms, 30s or 2h, from ${durationRange(range)}; not ${JSON.stringify(text)}`,
    place,
  );
}

function itemsOf(schema: JsonSchema): JsonSchema {
  return schema["items"] as JsonSchema;
}

function headersOf(text: string): Readonly<Record<string, string>> {
  const lines = text.split("\n").filter((line) => line.trim() !== "");
  const pairs = lines.map((line, index) => {
    const colon = line.indexOf(":");
    // Its text is not repeated: it may be a credential, and a message may get into a log.
    if (colon < 1)
      throw new Unreadable(`takes NAME: VALUE; number ${index + 1} of these has no name and colon`);
    return [line.slice(0, colon).trim(), line.slice(colon + 1).trim()] as const;
  });
  const names = pairs.map(([name]) => name.toLowerCase());
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice !== undefined) throw new Unreadable(`names ${twice} twice`);
  return Object.fromEntries(pairs);
}
