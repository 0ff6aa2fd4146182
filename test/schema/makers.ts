/** So many values. */
export function many<T>(count: number, of: (index: number) => T): T[] {
  return Array.from({ length: count }, (_, index) => of(index));
}

/** An object with so many members, `p0` and so on. */
export function members(count: number, of: (index: number) => unknown = (index) => index) {
  return Object.fromEntries(many(count, (index) => [`p${index}`, of(index)]));
}

/** Definitions `d0` and so on that lead to each other, and so many steps on to the last one. */
export function chain(
  steps: number,
  last: unknown,
  through: (next: { readonly $ref: string }) => unknown = (next) => ({ allOf: [next] }),
): Record<string, unknown> {
  const definitions = many(steps, (index) => [`d${index}`, through({ $ref: `#/definitions/d${index + 1}` })]);
  return Object.fromEntries([...definitions, [`d${steps}`, last]]);
}

/** A value that lies so many levels down, such as between `{"a":` and `}`. */
export function nested(open: string, close: string, levels: number, inside = "0"): unknown {
  return JSON.parse(open.repeat(levels) + inside + close.repeat(levels));
}
