/** The names of what the arrays in a JSON text hold, in their order, so that no SQL counts places. */
export interface Columns<N extends readonly string[]> {
  /** SQL of all values in a row of `json_each`, by their names. */
  readonly values: string;
  /** SQL of one value in a row of `json_each`. */
  value(name: N[number]): string;
}

export function columns<const N extends readonly string[]>(...names: N): Columns<N> {
  const value = (name: N[number]): string => `value ->> ${names.indexOf(name)}`;
  return { values: names.map((name) => `${value(name)} AS ${name}`).join(", "), value };
}
