/** The kinds of JSON value as bits; a number is an integer or a fraction, as draft-07 tells them apart by value. */
export const TYPE = {
  null: 1,
  boolean: 2,
  integer: 4,
  fraction: 8,
  string: 16,
  array: 32,
  object: 64,
} as const;

export const NUMBER = TYPE.integer | TYPE.fraction;
export const ANY = 127;
export const TYPE_BITS: readonly number[] = Object.values(TYPE);

const NAMED: Readonly<Record<string, number>> = {
  null: TYPE.null,
  boolean: TYPE.boolean,
  integer: TYPE.integer,
  number: NUMBER,
  string: TYPE.string,
  array: TYPE.array,
  object: TYPE.object,
};

/** What the keyword `type` allows. */
export function typesNamed(type: unknown): number {
  if (type === undefined) return ANY;
  if (typeof type === "string") return NAMED[type] ?? 0;
  return (type as string[]).reduce((mask, name) => mask | (NAMED[name] ?? 0), 0);
}

/** The bit of a value. Numbers no double can hold (from `1e400`) are left out of every comparison: they have none. */
export function typeOf(value: unknown): number {
  if (value === null) return TYPE.null;
  if (Array.isArray(value)) return TYPE.array;
  if (typeof value === "boolean") return TYPE.boolean;
  if (typeof value === "string") return TYPE.string;
  if (typeof value !== "number") return TYPE.object;
  if (!Number.isFinite(value)) return 0;
  return Number.isInteger(value) ? TYPE.integer : TYPE.fraction;
}
