/** The places of names in a list of them. */
type Places<N extends readonly string[]> = {
  readonly [I in keyof N & `${number}` as N[I]]: I extends `${infer P extends number}` ? P : never;
};

/** The names of what an array holds, in its order, so that no code and no SQL counts places. */
export interface Columns<N extends readonly string[]> {
  readonly at: Places<N>;
  readonly count: number;
  /** All of a row of `json_each`, by their names. */
  readonly values: string;
  /** One of a row of `json_each`. */
  value(name: N[number]): string;
  /** A `json_array` of SQL for each. */
  select(sql: Readonly<Record<N[number], string>>): string;
  /** For rows that are few: an array literal takes a tenth of the time. */
  pack(row: Readonly<Record<N[number], unknown>>): unknown[];
}

export function columns<const N extends readonly string[]>(...names: N): Columns<N> {
  const at = Object.fromEntries(names.map((name, place) => [name, place]));
  const value = (name: N[number]): string => `value ->> ${at[name]!}`;
  return {
    at: at as Places<N>,
    count: names.length,
    values: names.map((name) => `${value(name)} AS ${name}`).join(", "),
    value,
    select: (sql) => `json_array(${names.map((name: N[number]) => sql[name]).join(", ")})`,
    pack: (row) => names.map((name: N[number]) => row[name]),
  };
}
