/** The names of what the arrays in a JSON text hold, in their order, so that no code and no SQL counts places. */
export interface Columns<N extends readonly string[]> {
  /** SQL of all values in a row of `json_each`, by their names. */
  readonly values: string;
  /** SQL of one value in a row of `json_each`. */
  value(name: N[number]): string;
  /** Packs a row in this order. It is for rows that are few: an array literal takes a tenth of the time. */
  pack(row: Readonly<Record<N[number], unknown>>): unknown[];
}

export function columns<const N extends readonly string[]>(...names: N): Columns<N> {
  const value = (name: N[number]): string => `value ->> ${names.indexOf(name)}`;
  return {
    values: names.map((name) => `${value(name)} AS ${name}`).join(", "),
    value,
    pack: (row) => names.map((name: N[number]) => row[name]),
  };
}
